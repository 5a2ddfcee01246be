// Compiles src/static.c of the tree with the flags of libmimalloc-sys.
use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=MIMALLOC_SOURCE");
    if env::var_os("CARGO_FEATURE_BINDINGS").is_some() {
        return;
    }
    let tree = env::var("MIMALLOC_SOURCE").expect("MIMALLOC_SOURCE is not set");
    let mut build = cc::Build::new();
    build.include(format!("{tree}/include")).include(format!("{tree}/src"));
    build.file(format!("{tree}/src/static.c"));
    build.flag_if_supported("-ftls-model=initial-exec").flag("-Wno-error=date-time");
    if env::var_os("CARGO_FEATURE_V3").is_some() {
        build.define("MI_API_LEVEL", "3");
    }
    if env::var_os("CARGO_FEATURE_OVERRIDE").is_some() {
        build.define("MI_MALLOC_OVERRIDE", None).flag_if_supported("-fno-builtin-malloc");
    }
    if env::var_os("CARGO_FEATURE_SECURE").is_some() {
        build.define("MI_SECURE", "4");
    }
    build.define("MI_DEBUG", "0");
    if env::var("DEBUG").as_deref() != Ok("true") {
        build.define("MI_BUILD_RELEASE", None).define("NDEBUG", None);
    }
    build.compile("mimalloc");
}
