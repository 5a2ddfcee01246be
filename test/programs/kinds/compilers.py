"""Compilers, what they build, and tools of programmers."""

import re

from registry import ROOT, program

CXX_SOURCE = r"""
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
int main() {
  std::map<std::string, std::vector<int>> table;
  for (int i = 0; i < 20000; i++) table[std::to_string(i % 997)].push_back(i);
  std::regex digits("(\\d)(\\d+)");
  size_t n = std::count_if(table.begin(), table.end(), [&](auto& e) { return std::regex_match(e.first, digits); });
  std::vector<std::thread> threads;
  std::vector<size_t> sums(4);
  for (size_t t = 0; t < 4; t++) threads.emplace_back([&sums, t] {
    std::unordered_map<int, std::unique_ptr<std::string>> m;
    for (int i = 0; i < 5000; i++) m[i] = std::make_unique<std::string>(size_t(i % 200), 'x');
    for (auto& e : m) sums[t] += e.second->size();
  });
  for (auto& t : threads) t.join();
  std::variant<int, std::string> v = std::string("text");
  std::ostringstream out;
  out << n << ' ' << sums[0] + sums[3] << ' ' << std::get<1>(v);
  std::cout << out.str() << '\n';
}
"""


@program("gcc", "binutils:as", quick=True)
def gcc(session):
    """gcc: this project's sources, with and without link-time optimisation; the objects must be the same bytes"""
    session.both(["sh", "-c", f"gcc -O1 -g -DNDEBUG -I{ROOT}/include -c {ROOT}/src/static.c -o out.o && sha256sum out.o"])
    programs = f"{ROOT}/bench/programs/barnes.c {ROOT}/bench/programs/espresso.c"
    session.both(["sh", "-c", f"for i in {programs}; do gcc -O2 -flto -frandom-seed=1 -c $i -o out.o && sha256sum out.o; done"])
    # the driver, the compiler proper and the assembler
    session.served(["gcc", "-O2", "-DNDEBUG", f"-I{ROOT}/include", "-c", f"{ROOT}/src/static.c", "-o", "out.o"],
                   least_pages=100, least_processes=3)


@program("g++", "binutils:as", quick=True)
def gxx(session):
    """g++: templates of the standard library, and this project as C++; then what it built"""
    source = session.work / "source.cpp"
    source.write_text(CXX_SOURCE, encoding="utf-8")
    script = (f"g++ -O1 -pthread {source} -o program && sha256sum program && ./program && "
              f"g++ -x c++ -std=gnu++17 -O0 -DNDEBUG -I{ROOT}/include -c {ROOT}/src/static.c -o out.o && sha256sum out.o")
    session.both(["sh", "-c", script], timeout=300)
    session.served(["g++", "-O1", "-pthread", source, "-o", "program"], least_pages=500, least_processes=4, timeout=300)


GIT_ENV = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
           (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2020-01-01T00:00:00Z"))}
GIT_ENV.update(GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_COUNT="2", GIT_CONFIG_KEY_0="init.defaultBranch",
               GIT_CONFIG_VALUE_0="main", GIT_CONFIG_KEY_1="pack.threads", GIT_CONFIG_VALUE_1="2")

GIT_SCRIPT = r"""
set -e
git init -q repo; cd repo
i=0; while [ $i -lt 40 ]; do
  seq $i $((i * 50 + 100)) > file$((i % 7)); mkdir -p dir$((i % 5)); seq $((i * 3)) $((i * 9 + 500)) > dir$((i % 5))/f$i
  git add -A; git commit -q -m "commit $i"; i=$((i + 1))
done
git branch side HEAD~10; git checkout -q side; echo side > side-file; git add -A; git commit -q -m side
git checkout -q main; git merge -q --no-edit side
git gc -q --aggressive --prune=now
git fsck --full --strict 2>&1
cd ..; git clone -q --no-local repo clone; cd clone
git log --stat --format='%H %s' -M; git blame file3 | tail -3; git grep -c 77 | head -20; git rev-parse HEAD
git repack -a -d -f -q --depth=50 --window=50; git verify-pack -v .git/objects/pack/*.idx | tail -1 | sed 's/.*: //'
"""


@program("git", quick=True)
def git(session):
    """git: forty commits, merge, gc, fsck, clone, log, blame, grep, repack"""
    session.both(["sh", "-c", GIT_SCRIPT], env=GIT_ENV)
    repo = session.fresh("repo")
    session.must(["sh", "-c", "git init -q . && seq 1 20000 > f && git add f && git commit -q -m one"], False, env=GIT_ENV, cwd=repo)
    session.served(["git", "repack", "-a", "-d", "-f"], env=GIT_ENV, cwd=repo, least_pages=3)


@program("clang-19")
def clang(session):
    """clang: this project's sources, with debug information; the object must be the same bytes"""
    argv = ["clang-19", "-O0", "-g", "-DNDEBUG", f"-I{ROOT}/include", "-c", f"{ROOT}/src/static.c", "-o", "out.o"]
    session.both(["sh", "-c", '"$@" && sha256sum out.o', "sh", *argv])
    session.served(argv, least_pages=100)


RUST_SOURCE = r"""
use std::collections::{BTreeMap, HashMap};
use std::thread;
fn main() {
    let mut table: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for i in 0..100_000u32 { table.entry(format!("k{}", i.wrapping_mul(7919) % 3001)).or_default().push(i); }
    println!("{} {}", table.len(), table["k17"].len());
    let threads: Vec<_> = (1..5usize).map(|n| thread::spawn(move || {
        let m: HashMap<usize, Box<str>> = (0..n * 5000).map(|i| (i, "x".repeat(i % 100).into_boxed_str())).collect();
        m.values().map(|s| s.len()).sum::<usize>()
    })).collect();
    println!("{:?}", threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>());
}
"""


@program("rustc:/usr/bin/rustc", "gcc")
def rust(session):
    """rustc: a program with maps and threads; what it built must be the same bytes and print the same"""
    source = session.work / "source.rs"
    source.write_text(RUST_SOURCE, encoding="utf-8")
    build = ["/usr/bin/rustc", "-O", "-C", "codegen-units=2", "-o", "program", source]
    session.both(["sh", "-c", '"$@" && sha256sum program && ./program', "sh", *build])
    where = session.fresh("built")
    session.served(build, cwd=where, least_pages=200)
    session.served([where / "program"], least_pages=100)


GO_SOURCE = r"""
package main

// #include <stdlib.h>
// #include <string.h>
// static size_t work(int n) { size_t sum = 0; for (int i = 0; i < n; i++) { char* p = malloc(i % 3000 + 1); memset(p, i, i % 3000 + 1); sum += p[i % 3000] & 1; free(p); } return sum; }
import "C"
import ("fmt"; "sort"; "strings"; "sync"; "unsafe")

func main() {
	table := map[string][]int{}
	for i := 0; i < 100000; i++ { k := fmt.Sprint(i * 7919 % 3001); table[k] = append(table[k], i) }
	keys := make([]string, 0); for k := range table { keys = append(keys, k) }; sort.Strings(keys)
	fmt.Println(len(keys), len(strings.Join(keys, ",")))
	sums := make([]C.size_t, 8); var wait sync.WaitGroup
	for i := range sums { wait.Add(1); go func(i int) { defer wait.Done(); sums[i] = C.work(C.int(2000 * i)) }(i) }
	wait.Wait(); fmt.Println(sums)
	texts := make([]*C.char, 0); for i := 0; i < 20000; i++ { texts = append(texts, C.CString(strings.Repeat("x", i % 200))) }
	total := 0; for _, t := range texts { total += len(C.GoString(t)); C.free(unsafe.Pointer(t)) }; fmt.Println(total)
}
"""


@program("golang-go:/usr/bin/go", "gcc")
def go(session):
    """Go with cgo: its own runtime for Go, malloc for C, from many threads; and gcc below go build"""
    source = session.work / "source.go"
    source.write_text(GO_SOURCE, encoding="utf-8")
    cache = session.fresh("cache")
    env = {"GOCACHE": str(cache), "GO111MODULE": "off", "GOFLAGS": "-p=2", "GOTOOLCHAIN": "local"}
    session.client(["/usr/bin/go", "build", "-o", session.work / "program", source], env=env, timeout=400)   # fills the cache
    session.both(["sh", "-c", f"/usr/bin/go build -o program {source} && ./program"], env=env, timeout=400)
    session.bound([session.work / "program"])


JAVA_SOURCE = r"""
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.*;
public class Program {
  public static void main(String[] args) throws Exception {
    Map<String, List<Integer>> table = new TreeMap<>();
    for (int i = 0; i < 100000; i++) table.computeIfAbsent("k" + (i * 7919L) % 3001, k -> new ArrayList<>()).add(i);
    System.out.println(table.size() + " " + table.get("k17").size());
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Integer>> sums = new ArrayList<>();
    for (int n = 1; n < 9; n++) { int m = n; sums.add(pool.submit(() -> IntStream.range(0, m * 3000).mapToObj(Integer::toString).collect(Collectors.joining(",")).length())); }
    for (Future<Integer> f : sums) System.out.print(f.get() + " ");
    pool.shutdown();
    byte[] in = new byte[1 << 20], out = new byte[1 << 20]; for (int i = 0; i < in.length; i++) in[i] = (byte) (i * i >> 3);
    int total = 0;
    for (int i = 0; i < 20; i++) { Deflater d = new Deflater(6); d.setInput(in); d.finish(); total += d.deflate(out); d.end(); }
    System.out.println(total);
  }
}
"""


@program("openjdk-17-jdk-headless:javac")
def java(session):
    """javac and java: objects in a heap of their own; compilers, class data, zlib and threads use malloc"""
    source = session.work / "Program.java"
    source.write_text(JAVA_SOURCE, encoding="utf-8")
    javac = ["javac", "-J-XX:+UseSerialGC", "-d", ".", source]
    java = ["java", "-XX:+UseSerialGC", "-Xmx200m", "Program"]
    session.both(["sh", "-c", f"{' '.join(map(str, javac))} && {' '.join(java)}"])
    where = session.fresh("served")
    session.served(javac, cwd=where, least_pages=100)
    session.served(java, cwd=where, least_pages=100)


OCAML_SOURCE = r"""
module M = Map.Make (String)
let () =
  let m = ref M.empty in
  for i = 0 to 60000 do
    let k = string_of_int (i * 7919 mod 3001) in
    m := M.update k (function None -> Some [i] | Some l -> Some (i :: l)) !m
  done;
  Printf.printf "%d %d\n" (M.cardinal !m) (List.length (M.find "17" !m));
  let big = Array.init 400 (fun i -> Bytes.make (i * 500) 'x') in
  Gc.compact ();
  let b = Buffer.create 16 in
  Array.iter (fun x -> Buffer.add_subbytes b x 0 (Bytes.length x / 7)) big;
  Printf.printf "%d %s\n" (Buffer.length b) (Digest.to_hex (Digest.string (Buffer.contents b)))
"""


@program("ocaml-nox:ocamlopt", "gcc")
def ocaml(session):
    """OCaml: bytecode and native compilers, and a program with maps, buffers and a compaction"""
    source = session.work / "program.ml"
    source.write_text(OCAML_SOURCE, encoding="utf-8")
    script = (f"cp {source} . && ocamlopt -O3 -o native program.ml 2>/dev/null && ./native && "
              "ocamlc -o bytecode program.ml && sha256sum program.cmo && ocamlrun ./bytecode")
    session.both(["sh", "-c", script])
    session.served(["ocamlopt", "-o", session.work / "native", source], least_pages=20)
    session.served([session.work / "native"], least_pages=5)


HASKELL_SOURCE = r"""
import qualified Data.Map.Strict as M
import Foreign
import Control.Monad
main :: IO ()
main = do
  let m = M.fromListWith (+) [(show (i * 7919 `mod` 3001), length (show i)) | i <- [0 .. 60000 :: Int]]
  print (M.size m, sum (M.elems m))
  sums <- forM [1 .. 3000] $ \n -> allocaBytes n $ \p -> do { fillBytes p 7 n; b <- peekByteOff p (n - 1) :: IO Word8; return (fromIntegral b :: Int) }
  blocks <- forM [1 .. 2000] mallocBytes :: IO [Ptr Word8]
  mapM_ free blocks
  print (sum sums, length (show (product [1 .. 2000 :: Integer])))
"""


@program("ghc")
def haskell(session):
    """ghc: compiles and links a program, and runs it"""
    source = session.work / "Main.hs"
    source.write_text(HASKELL_SOURCE, encoding="utf-8")
    script = f"cp {source} . && ghc -v0 -O1 Main.hs -o program && ./program"
    session.both(["sh", "-c", script], timeout=300)
    where = session.fresh("built")
    session.served(["ghc", "-v0", "-O1", "-outputdir", ".", source, "-o", "program"], cwd=where, least_pages=50, timeout=300)
    session.served([where / "program"], least_pages=5)


CMAKE_LISTS = """cmake_minimum_required(VERSION 3.18)
project(example C)
foreach(i RANGE 40)
  file(WRITE ${CMAKE_BINARY_DIR}/f${i}.c "int f${i}(int x) { return x * ${i}; }\\n")
  list(APPEND sources ${CMAKE_BINARY_DIR}/f${i}.c)
endforeach()
add_library(f STATIC ${sources})
file(WRITE ${CMAKE_BINARY_DIR}/main.c "int f7(int); int main(void) { return f7(6) != 42; }\\n")
add_executable(main ${CMAKE_BINARY_DIR}/main.c)
target_link_libraries(main f)
enable_testing()
add_test(NAME main COMMAND main)
"""


def cmake_with(session, generator):
    source = session.fresh("source")
    (source / "CMakeLists.txt").write_text(CMAKE_LISTS, encoding="utf-8")
    script = (f"cmake -G '{generator}' -S {source} -B . > configured && cmake --build . --parallel 2 > built && "
              "ctest | grep -c Passed && sha256sum libf.a main && cmake --build . --target clean > cleaned && ls")
    session.both(["sh", "-c", script])
    build = session.fresh("build")
    session.served(["cmake", "-G", generator, "-S", source, "-B", "."], cwd=build, least_pages=50)
    return build


@program("cmake", "ninja-build:ninja", "gcc")
def ninja(session):
    """CMake, ninja and CTest: configure, build with two jobs, test, clean"""
    session.served(["ninja"], cwd=cmake_with(session, "Ninja"), least_pages=10)


@program("cmake", "make", "gcc")
def make(session):
    """CMake and GNU make: the same with recursive makefiles"""
    session.served(["make", "-j2"], cwd=cmake_with(session, "Unix Makefiles"), least_pages=200, least_processes=40)


@program("gdb", "gcc")
def gdb(session):
    """gdb: breakpoints and stacks in this project with debug information; the program under it has no library"""
    source = session.work / "main.c"
    source.write_text('#include <mimalloc.h>\nint main(void) { for (int i = 1; i < 300; i++) mi_free(mi_malloc(i * 40)); return 0; }\n', encoding="utf-8")
    program_file = session.work / "main"
    session.client(["gcc", "-g", "-O1", "-DNDEBUG", f"-I{ROOT}/include", source, f"{ROOT}/src/static.c", "-pthread", "-o", program_file])
    commands = ["set pagination off", "set confirm off", "unset environment LD_PRELOAD", "unset environment LD_DEBUG", "set startup-with-shell off", "break main", "run",
                "next", "ptype mi_heap_t", "info functions mi_heap_", "backtrace", "continue"]
    argv = ["gdb", "-nx", "-q", "-batch", *(word for c in commands for word in ("-ex", c)), program_file]
    session.both(argv, clean=lambda text: re.sub(r"process \d+", "process", text), stderr=False)
    session.bound(argv)


Z3_SOURCE = """
(set-option :smt.random_seed 1)
(declare-fun f (Int Int) Int) (declare-const a (_ BitVec 16)) (declare-const b (_ BitVec 16))
(assert (= (bvmul a b) #x7a31)) (assert (bvugt a #x0101)) (assert (bvugt b #x0101))
(check-sat)
(push) (declare-const x Int) (declare-const y Int) (declare-const z Int)
(assert (and (> x 0) (> y 0) (> z 0) (= (+ (* 3 x) (* 5 y)) (* 7 z)) (< (+ x y z) 100) (= (mod x 7) 3))) (check-sat) (pop)
(push) (assert (forall ((i Int) (j Int)) (=> (< i j) (< (f i j) (f (+ i 1) (+ j 1)))))) (assert (= (f 0 1) 5)) (assert (< (f 10 11) 5)) (check-sat) (pop)
"""


@program("z3")
def z3(session):
    """Z3: bit vectors, integers, quantifiers"""
    argv = ["z3", "-T:100", "-in"]
    session.both(argv, stdin=Z3_SOURCE)
    session.served(argv, stdin=Z3_SOURCE, least_pages=50)
