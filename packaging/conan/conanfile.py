"""Conan recipe that builds from the tree it is a part of:

conan create packaging/conan                    the version of the header, with the interface of level 2
conan create packaging/conan --version 3.4.3    level 3"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class MimallocConan(ConanFile):
    name = "mimalloc"
    description = "A general purpose memory allocator"
    license = "MIT"
    topics = ("memory", "allocator", "malloc")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "override": [True, False],        # also define malloc, free, operator new, ...
        "single_object": [True, False],   # the object, for the front of a link line, instead of the static library
        "secure": [True, False],
        "guarded": [True, False],
        "xmalloc": [True, False],
    }
    default_options = {"shared": False, "fPIC": True, "override": False, "single_object": False, "secure": False,
                       "guarded": False, "xmalloc": False}

    @property
    def tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        numbers = re.findall(r"^ *# *define +MI_MALLOC_VERSION +(\d+)", load(self, os.path.join(self.tree, "include/mimalloc.h")), re.M)
        known = {n // 10000: f"{n // 10000}.{n // 100 % 100}.{n % 100}" for n in map(int, numbers)}
        self.version = self.version or known[2]
        if self.version not in known.values():
            raise ConanInvalidConfiguration(f"This tree has the versions {', '.join(sorted(known.values()))}")

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, src=self.tree, dst=self.export_sources_folder)

    def config_options(self):
        if self.settings.os == "Windows":
            del self.options.fPIC

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")   # the library is C
        self.settings.rm_safe("compiler.libcxx")
        if self.options.shared:
            self.options.rm_safe("fPIC")
            self.options.rm_safe("single_object")

    def layout(self):
        cmake_layout(self)

    @property
    def is_object(self):
        return bool(self.options.get_safe("single_object"))

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "MI_API_LEVEL": str(self.version).split(".", maxsplit=1)[0],
            "MI_BUILD_TESTS": False,
            "MI_BUILD_SHARED": bool(self.options.shared),
            "MI_BUILD_STATIC": not self.options.shared and not self.is_object,
            "MI_BUILD_OBJECT": self.is_object,
            "MI_INSTALL_TOPLEVEL": True,
            "MI_OVERRIDE": bool(self.options.override),
            "MI_SECURE": bool(self.options.secure),
            "MI_GUARDED": bool(self.options.guarded),
            "MI_XMALLOC": bool(self.options.xmalloc),
        })
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        for directory in ("lib/cmake", "lib/pkgconfig", "share"):   # Conan's generators write their own
            rmdir(self, os.path.join(self.package_folder, directory))

    def package_info(self):
        name = "mimalloc"
        if self.options.secure:
            name += "-secure"
        if self.settings.build_type == "Debug":
            name += "-debug"
        target = "mimalloc" if self.options.shared else "mimalloc-obj" if self.is_object else "mimalloc-static"
        self.cpp_info.set_property("cmake_file_name", "mimalloc")
        self.cpp_info.set_property("cmake_target_name", target)
        self.cpp_info.set_property("pkg_config_name", "mimalloc")
        if self.is_object:
            flags = [os.path.join(self.package_folder, "lib", f"{name}.o")]
            self.cpp_info.exelinkflags = flags
            self.cpp_info.sharedlinkflags = flags
        else:
            self.cpp_info.libs = [name]
        if target == "mimalloc-static" and self.options.override and self.settings.os in ("Linux", "FreeBSD"):
            flags = ["-Wl,-u,malloc"]   # for programs that GCC optimises with -flto, as the CMake package has it
            self.cpp_info.exelinkflags = flags
            self.cpp_info.sharedlinkflags = flags
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
