//! Statistics and options, held against what the headers and the library say of them.

mod common;

use std::fs;
use std::path::PathBuf;

use mimalloc_compat::{process_info, set_output, stats, Heap, MiMalloc, Opt};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

fn header(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(root.join("c/include").join(name))
        .or_else(|_| fs::read_to_string(root.join("../include").join(name)))
        .expect("the header is there")
}

/// The number behind `"name": {` ... `"key":` or behind `"name":` in a JSON text.
fn number_in(json: &str, name: &str, key: &str) -> Option<i64> {
    let rest = &json[json.find(&format!("\"{name}\":"))? + name.len() + 3..];
    let end = rest.find(&['}', '\n'][..]).unwrap_or(rest.len());
    let rest = &rest[..end];
    let rest = match rest.find(&format!("\"{key}\":")) {
        Some(at) => &rest[at + key.len() + 3..],
        None => rest,
    };
    let digits: String =
        rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    digits.parse().ok()
}

/// The fields of the structure have the values that the library writes under their names.
#[test]
fn the_numbers_are_those_of_the_json() {
    let heap = Heap::new().unwrap();
    let _blocks: Vec<_> =
        (1..200).map(|i| heap.boxed_slice(i * 10, |i| i as u8).unwrap()).collect();
    let _large = heap.boxed_slice(1 << 20, |i| i as u8).unwrap();
    let (json, numbers) = (heap.stats_json().unwrap(), heap.stats());
    let mut compared = 0;
    macro_rules! compare {
        ($($field:ident . $key:ident),* $(,)?) => {
            $(if let Some(number) = number_in(&json, stringify!($field), stringify!($key)) {
                assert_eq!(numbers.$field.$key, number, "{} in {}", stringify!($field), &*json);
                compared += 1;
            })*
        };
    }
    compare!(
        pages.current,
        committed.current,
        page_committed.current,
        pages_abandoned.current,
        malloc_normal.current,
        malloc_huge.current,
        malloc_requested.current,
        malloc_normal_count.total,
        malloc_huge_count.total,
    );
    assert!(compared >= 8, "only {compared} fields were found in {}", &*json);
    assert_eq!(numbers.blocks_in_use(), 200); // one is large
    assert!(numbers.malloc_huge.current >= 1 << 20 && numbers.pages.current > 5);
    let in_bins: i64 = numbers.malloc_bins.iter().map(|bin| bin.current).sum();
    assert_eq!(in_bins, 200);
}

/// The names of fields, in the order of the header.
#[test]
fn the_fields_are_those_of_the_header() {
    let text = header("mimalloc-stats.h");
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/raw/stats_t.rs")).unwrap();
    let mut at = 0;
    let fields = text.split("#define MI_STAT_FIELDS() \\").nth(1).unwrap();
    let fields = fields.split("\n\n").next().unwrap();
    let names = fields.split("MI_STAT_COUNT").skip(1).map(|part| {
        let begin = part.find('(').unwrap() + 1;
        part[begin..part.find(')').unwrap()].to_string()
    });
    let mut count = 0;
    for name in names {
        let place = source[at..].find(&format!("pub {name}: ")).unwrap_or_else(|| panic!("{name}"));
        at += place;
        count += 1;
    }
    assert!(count > 30, "{count} fields");
}

#[test]
fn the_statistics_of_the_process() {
    let before = stats::process();
    let blocks: Vec<Box<[u8; 100]>> = (0..100_000).map(|_| Box::new([1; 100])).collect();
    let large = vec![1u8; 8 << 20];
    let after = stats::process();
    assert!(after.blocks_in_use() >= before.blocks_in_use() + 90_000);
    assert!(after.malloc_huge_count.total > before.malloc_huge_count.total);
    assert!(after.bytes_in_use() > (8 << 20) + 9_000_000 && after.threads.current >= 1);
    drop((blocks, large));
    let info = process_info();
    assert!(info.rss > 1 << 20 && info.peak_rss >= info.rss / 2 && info.committed > 0);
    assert!(stats::Stats::bin_size(0).is_some());
    assert_eq!(stats::Stats::bin_size(10_000), None);
    assert_eq!(stats::Stats::bin_size(stats::LAST_BIN), Some(isize::MAX as usize));
}

/// Printing may allocate: the text grows in this allocator while the library prints.
#[test]
fn tables_and_texts() {
    let table = stats::Table.to_string();
    for word in ["reserved", "committed", "threads"] {
        assert!(table.contains(word), "{word} in {table}");
    }
    let kept = vec![0u8; 700_001];
    assert!(stats::Leaks.to_string().lines().count() > 2);
    drop(kept);
    let json = stats::json().unwrap();
    assert!(
        json.starts_with('{') && json.trim_end().ends_with('}') && json.contains("\"threads\"")
    );
    assert_eq!(json.to_string(), &*json);
    std::thread::spawn(move || drop(json)).join().unwrap();

    // A writer that fails does not stop the library, and the failure is told.
    struct Full(usize);
    impl std::fmt::Write for Full {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 += text.len();
            if self.0 > 100 {
                Err(std::fmt::Error)
            } else {
                Ok(())
            }
        }
    }
    use std::fmt::Write;
    assert!(write!(Full(0), "{}", stats::Table).is_err());
}

/// Every option that the header does not mark as one without effect, with its number; and no other.
#[test]
fn the_options_are_those_of_the_header() {
    let column = if cfg!(feature = "level3") { 1 } else { 0 };
    let text = header("mimalloc.h");
    let mut found = 0;
    for line in text.lines() {
        let parts = line.strip_prefix("  mi_option_").and_then(|rest| rest.split_once("/*"));
        let (name, comment) = match parts {
            Some(parts) => parts,
            None => continue,
        };
        let name: String = name
            .trim()
            .trim_end_matches(',')
            .split('_')
            .map(|part| part[..1].to_uppercase() + &part[1..])
            .collect();
        let number = comment.split_whitespace().nth(column).unwrap();
        let only_reserves = name.starts_with("Reserve"); // at start, before a program can set it
        if number == "-" || comment.contains("no effect here") || only_reserves {
            assert!(!Opt::ALL.iter().any(|o| format!("{o:?}") == name), "{name} has no effect");
            continue;
        }
        let option = Opt::ALL.iter().find(|o| format!("{o:?}") == name);
        let option = option.unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(option.number().to_string(), number, "{name}");
        found += 1;
    }
    assert_eq!(found, Opt::ALL.len());
}

#[test]
fn options_are_set_and_read() {
    Opt::MaxWarnings.set_default(17);
    assert_eq!(Opt::MaxWarnings.get(), 17);
    Opt::MaxWarnings.set(18);
    Opt::MaxWarnings.set_default(19);
    assert_eq!(Opt::MaxWarnings.get(), 18, "it is set already");
    Opt::PurgeDelay.set(-1);
    assert_eq!(Opt::PurgeDelay.get(), -1);
}

#[test]
fn options_come_from_the_environment() {
    if common::is_child() {
        assert_eq!((Opt::PurgeDelay.get(), Opt::MaxErrors.get()), (77, 5));
        Opt::MaxErrors.set_default(6);
        assert_eq!(Opt::MaxErrors.get(), 5, "the environment comes first");
        println!("read");
        return;
    }
    let variables = [("MIMALLOC_PURGE_DELAY", "77"), ("mimalloc_max_errors", "5")];
    let output = common::run_again("options_come_from_the_environment", &variables);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("read"), "{output:?}");
}

#[test]
fn output_goes_to_a_function() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    if !common::is_child() {
        let output = common::run_again("output_goes_to_a_function", &[("MIMALLOC_VERBOSE", "1")]);
        assert!(output.status.success(), "{output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !errors.contains("9223372036854775807"),
            "the warning went to the function: {errors}"
        );
        return;
    }
    set_output(Some(|text| {
        BYTES.fetch_add(text.len(), Ordering::Relaxed);
    }));
    let earlier = BYTES.load(Ordering::Relaxed);
    assert!(earlier > 0, "what was printed before is delivered");
    Opt::AllowThp.set(i64::MAX); // out of range: a warning
    assert!(BYTES.load(Ordering::Relaxed) > earlier);
    set_output(None);
}
