// Gives a program of Emscripten the environment of node.
Module["preRun"] = [() => Object.assign(ENV, process.env)];
