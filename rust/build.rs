//! Compiles the C library, `c/src/static.c`, as the features say.

use std::env;
use std::path::{Path, PathBuf};

fn has(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some()
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

/// Where `src` and `include` are: in the package, or in the tree around this directory where links cannot be had.
fn sources() -> PathBuf {
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets CARGO_MANIFEST_DIR"));
    for tree in [here.join("c"), here.join("..")] {
        if tree.join("src/static.c").is_file() && tree.join("include/mimalloc.h").is_file() {
            return tree;
        }
    }
    panic!("the C sources are missing: neither c/src/static.c nor ../src/static.c is there");
}

/// Cargo looks for changes in each of these files.
fn watch(path: &Path) {
    if path.is_dir() {
        for entry in path.read_dir().expect("the directory can be read").flatten() {
            watch(&entry.path());
        }
    } else {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn define_checks(build: &mut cc::Build) {
    let is_debug_profile = env::var("DEBUG").as_deref() == Ok("true");
    if has("debug") || (has("debug_in_debug") && is_debug_profile) {
        build.define("MI_DEBUG", "3");
    } else {
        build.define("MI_DEBUG", "0").define("MI_BUILD_RELEASE", None).define("NDEBUG", None);
    }
    if has("secure") {
        build.define("MI_SECURE", if has("secure_full") { "5" } else { "4" });
    }
    for (feature, macro_name) in
        [("guarded", "MI_GUARDED"), ("valgrind", "MI_TRACK_VALGRIND"), ("xmalloc", "MI_XMALLOC")]
    {
        if has(feature) {
            build.define(macro_name, "1");
        }
    }
}

fn define_rest(build: &mut cc::Build) {
    if has("level3") {
        build.define("MI_API_LEVEL", "3");
    }
    if has("override") {
        build.define("MI_MALLOC_OVERRIDE", None);
    }
    if has("background_thread") && target("OS") == "linux" {
        build.define("MI_INTERPOSE_THREADS", "1");
    }
    if has("no_thp") {
        build.define("MI_DEFAULT_ALLOW_THP", "0");
    }
    if has("local_dynamic_tls") {
        // What would find the functions may not be called yet while the library is relocated.
        build.define("MI_NO_IFUNC", "1");
    }
    build.define("MI_STATIC_LIB", None);
}

/// The flags of the CMake build. The library is optimised in every profile, as a system's library is.
fn choose_flags(build: &mut cc::Build) {
    let is_local_dynamic = has("local_dynamic_tls") || target("ENV") == "musl";
    let tls = if is_local_dynamic { "local-dynamic" } else { "initial-exec" };
    build.opt_level(2).warnings(false);
    for flag in
        ["-std=gnu11", "-fvisibility=hidden", "-fexceptions", "-fno-builtin-malloc", "-Wno-psabi"]
    {
        build.flag_if_supported(flag);
    }
    if target("OS") != "windows" {
        build.flag_if_supported(&format!("-ftls-model={tls}"));
    } else if target("ENV") == "gnu" && target("POINTER_WIDTH") == "64" {
        build.flag_if_supported("-mcmodel=small");
    }
}

/// What the library needs of the system, after the library itself.
fn link_system() {
    let libraries: &[&str] = match (target("OS").as_str(), target("ARCH").as_str()) {
        ("windows", _) => &["psapi", "shell32", "user32", "advapi32", "bcrypt"],
        ("linux", "riscv64") => &["atomic"],
        _ => &[],
    };
    for library in libraries {
        println!("cargo:rustc-link-lib={library}");
    }
}

fn main() {
    if has("level3") && has("v2") {
        panic!("the features `level3` and `v2` exclude each other: v2 is level 2, the default");
    }
    let tree = sources();
    let mut build = cc::Build::new();
    build.include(tree.join("include")).file(tree.join("src/static.c"));
    define_checks(&mut build);
    define_rest(&mut build);
    choose_flags(&mut build);
    build.compile("mimalloc");
    link_system();
    watch(&tree.join("src"));
    watch(&tree.join("include"));
    // DEP_MIMALLOC_INCLUDE, for build scripts of crates with C code that calls the library.
    println!("cargo:include={}", tree.join("include").display());
}
