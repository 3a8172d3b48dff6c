// SPDX-License-Identifier: Apache-2.0
#include "rma_sim_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace rma::simulator {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& at) {
  std::error_code ignored;
  return fs::is_regular_file(at, ignored);
}

/// Where a program of that name may be: as a shell finds it.
std::vector<fs::path> places_of(const std::string& name) {
  std::vector<fs::path> places{fs::path(name)};
  if (name.find('/') != std::string::npos) return places;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty()) places.push_back(fs::path(folder) / name);
  }
  return places;
}

/// The module, or an empty path.
fs::path find_module(const std::string& name) {
  for (const fs::path& program : places_of(name)) {
    if (program.extension() == ".so" && is_file(program)) return program;
    const fs::path file = program.filename().string() + ".so";
    for (const fs::path& beside : {program.parent_path() / "sim" / file, program.parent_path() / file}) {
      if (is_file(beside)) return beside;
    }
  }
  return {};
}

}  // namespace

loaded load_program(const std::string& name) {
  const fs::path found = find_module(name);
  if (found.empty()) {
    const bool exists = is_file(name);
    return {nullptr, fmt::format("{}: {}; rma-sim loads a module, sim/{}.so or {}.so beside the program (see --help)",
                                 name, exists ? "it has no module" : "there is no such program",
                                 fs::path(name).filename().string(), fs::path(name).filename().string())};
  }
  std::error_code ignored;
  const fs::path whole = fs::absolute(found, ignored);
  void* const module = ::dlopen(whole.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return {nullptr, fmt::format("{} cannot be loaded: {}", found.string(), ::dlerror())};
  void* const symbol = ::dlsym(module, "main");
  if (symbol == nullptr) return {nullptr, fmt::format("{} has no main function", found.string())};
  return {reinterpret_cast<main_function>(symbol), {}};
}

}  // namespace rma::simulator
