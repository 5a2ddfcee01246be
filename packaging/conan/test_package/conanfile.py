import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class MimallocTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False   # nothing is written beside the sources
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            options = self.dependencies["mimalloc"].options
            expected = "ours" if options.override else "other"
            for name in ("test_package", "unnamed"):
                program = os.path.join(self.cpp.build.bindir, name)
                if name == "test_package" or os.path.exists(program):
                    self.run(f"{program} {expected}", env="conanrun")
