#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recipes_test.py SOURCE: the recipes of others' tools (Spack, containers, hosted CI) name what this project has. The
tools themselves are not needed."""
import os
import re
import sys
import types
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


CMAKE = text_of("CMakeLists.txt")


class Package:
    """What a recipe of Spack inherits from."""

    def define(self, option, value):
        return option, value

    def define_from_variant(self, option, variant):
        return option, variant


def spack_package():
    """The recipe's class, and its directives as (name, arguments)."""
    said = []
    names = ("license", "version", "variant", "depends_on", "conflicts")
    api = types.ModuleType("spack.package")
    api.CMakePackage = Package
    for name in names:
        setattr(api, name, lambda *values, _name=name, **_: said.append((_name, values)))
    api.__all__ = ["CMakePackage", *names]
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": api})
    scope = {}
    exec(compile(text_of("packaging/spack/package.py"), "package.py", "exec"), scope)
    return scope["Rma"], said


class Recipes(unittest.TestCase):
    def test_spack_has_the_project_s_version_and_options(self):
        package, said = spack_package()
        version = re.search(r"project\(rma VERSION (\S+)", CMAKE).group(1)
        self.assertIn(version, [values[0] for name, values in said if name == "version"])
        variants = {values[0] for name, values in said if name == "variant"}
        options = set(re.findall(r"option\((\w+)", CMAKE)) | {"BUILD_SHARED_LIBS"}
        for option, value in package().cmake_args():
            self.assertIn(option, options)
            if isinstance(value, str):
                self.assertIn(value, variants)

    def check_programs(self, lines):
        found = [word for line in lines for word in re.findall(r"(?:^|[\s\"])(\.?\w+/\w+)(?=$|[\s\"])", line)]
        self.assertTrue(found)
        for program in found:
            self.assertTrue(os.access(os.path.join(SOURCE, program), os.X_OK), f"{program} is no program")

    def test_container_runs_the_demonstration(self):
        lines = text_of("Containerfile").splitlines()
        self.check_programs([line for line in lines if line.startswith(("RUN", "CMD"))])

    def test_hosted_ci_runs_what_there_is(self):
        lines = re.findall(r"- run: (.*)", text_of(".github/workflows/test.yml"))
        self.check_programs([line for line in lines if "apt-get" not in line])


unittest.main()
