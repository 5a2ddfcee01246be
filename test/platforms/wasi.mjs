// Runs a program for WASI under node: node --no-warnings wasi.mjs PROGRAM.wasm [ARGUMENT ...]
// Its exit status is that of the program; with WASI_SHOW_MEMORY set, its last line on stderr is the size of its memory at the end.
import { readFileSync } from "node:fs";
import process, { argv, env } from "node:process";
import { WASI } from "node:wasi";

const wasi = new WASI({ version: "preview1", args: argv.slice(2), env, preopens: { "/": "/" }, returnOnExit: true });
const module = await WebAssembly.compile(readFileSync(argv[2]));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
let status;
try {
  status = wasi.start(instance);
} catch (error) { // abort() is a trap
  console.error(`${argv[2]}: ${error}`);
  status = 134;
}
if (env.WASI_SHOW_MEMORY) console.error(`memory: ${instance.exports.memory.buffer.byteLength}`);
process.exitCode = status;
