# SPDX-License-Identifier: Apache-2.0
"""The package of rma for Spack: put this folder into a repository of packages as packages/rma/, or
`spack repo create DIR && mkdir DIR/packages/rma && cp package.py DIR/packages/rma/ && spack repo add DIR`."""
from spack.package import *


class Rma(CMakePackage):
    """One-sided communication for parallel programs in C++20: windows of memory that other ranks put into, get from and
    update atomically, in epochs. Plain memory inside a node; RDMA by verbs, UCX or TCP between nodes."""

    homepage = "https://example.org/rma"
    git = "https://example.org/rma.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("shared", default=True, description="Build a shared library")
    variant("verbs", default=True, description="RDMA by rdma-core's verbs")
    variant("ucx", default=False, description="UCX as a fabric")
    variant("pmix", default=True, description="Start by PMIx launchers (mpirun, srun)")
    variant("armci", default=False, description="ARMCI without MPI on top (librma_armci)")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("boost@1.74:+context")
    depends_on("cli11@2:")
    depends_on("fmt@9:")
    depends_on("hwloc@2:")
    depends_on("nlohmann-json@3:")
    depends_on("openssl")
    depends_on("rdma-core", when="+verbs")
    depends_on("ucx", when="+ucx")
    depends_on("pmix", when="+pmix")

    conflicts("%gcc@:11", msg="rma is C++20: GCC 12 or newer")
    conflicts("%clang@:15", msg="rma is C++20: clang 16 or newer")

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("RMA_BUILD_ARMCI", "armci"),
            self.define("RMA_BUILD_MPI", False),
            self.define("RMA_BUILD_TOOLS", True),
            self.define("RMA_BUILD_TESTS", False),
            self.define("RMA_BUILD_EXAMPLES", False),
            self.define("RMA_BUILD_PERF", False),
        ]
