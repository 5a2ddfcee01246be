//! What the tests share.
#![allow(dead_code)]

use std::process::{Command, Output};

/// Resident memory of this process in bytes, as the system counts it.
pub fn resident() -> usize {
    if cfg!(target_os = "linux") {
        let text = std::fs::read_to_string("/proc/self/statm").expect("/proc is mounted");
        let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
        return pages * os_page();
    }
    mimalloc_compat::process_info().rss
}

fn os_page() -> usize {
    extern "C" {
        fn sysconf(name: i32) -> std::os::raw::c_long;
    }
    const SC_PAGESIZE: i32 = 30;
    // Safety: any number is allowed.
    unsafe { sysconf(SC_PAGESIZE) as usize }
}

/// A generator of numbers (xorshift) with a fixed seed, which every test prints that fails.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Runs one test of this program in a process of its own, in which [`is_child`] is true.
pub fn run_again(test: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("MI_TEST_CHILD", "1")
        .envs(variables.iter().copied())
        .output()
        .expect("the test can be started again")
}

pub fn is_child() -> bool {
    std::env::var_os("MI_TEST_CHILD").is_some()
}
