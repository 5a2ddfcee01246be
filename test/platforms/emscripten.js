// Gives a program of Emscripten the environment of node, if it looks at one.
Module["preRun"] = [() => typeof ENV == "undefined" || Object.assign(ENV, process.env)];
