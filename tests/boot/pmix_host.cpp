// SPDX-License-Identifier: Apache-2.0
/// \file
/// pmix_host [--wrapped|--silent] RANKS NAME=MEMBERS... -- PROGRAM ARGUMENT...: a PMIx launcher for this machine, which
/// has process sets. MEMBERS are ranks with commas; '*' stands for all, 'x' for a process of another job. --wrapped
/// answers questions as newer launchers do, together with what was asked; --silent never does.
///
/// Exits with the first status of a rank that is not 0.
#include <pmix.h>
#include <pmix_server.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr const char* job = "pmix_host";

struct orders {
  bool wrapped = false;
  bool silent = false;
  std::uint32_t ranks = 1;
  std::map<std::string, std::vector<pmix_proc_t>> sets;
  std::vector<char*> command;  ///< ends with null
};

/// PMIx calls functions, not objects.
orders& given() {
  static orders the;
  return the;
}

pmix_proc_t process(const char* space, pmix_rank_t rank) {
  pmix_proc_t made{};
  std::strncpy(made.nspace, space, PMIX_MAX_NSLEN);
  made.rank = rank;
  return made;
}

void define(const std::string& text) {
  const auto cut = text.find('=');
  std::istringstream members(text.substr(cut + 1));
  auto& set = given().sets[text.substr(0, cut)];
  for (std::string each; std::getline(members, each, ',');) {
    if (each == "*")
      set.push_back(process(job, PMIX_RANK_WILDCARD));
    else if (each == "x")
      set.push_back(process("another", 0));
    else
      set.push_back(process(job, static_cast<pmix_rank_t>(std::stoul(each))));
  }
}

// ---- what ranks ask ---------------------------------------------------------------------------------------------

pmix_status_t on_fence(const pmix_proc_t*, std::size_t, const pmix_info_t*, std::size_t, char* data, std::size_t bytes,
                       pmix_modex_cbfunc_t done, void* about) {
  done(PMIX_SUCCESS, data, bytes, about, std::free, data);  // all ranks are here: what they have given is everything
  return PMIX_SUCCESS;
}

bool answer(const pmix_query_t& asked, pmix_info_t& found) {
  if (std::strcmp(asked.keys[0], PMIX_QUERY_PSET_NAMES) == 0) {
    std::string names;
    for (const auto& [name, members] : given().sets) names += (names.empty() ? "" : ",") + name;
    return PMIx_Info_load(&found, asked.keys[0], names.c_str(), PMIX_STRING) == PMIX_SUCCESS;
  }
  if (std::strcmp(asked.keys[0], PMIX_QUERY_PSET_MEMBERSHIP) != 0) return false;
  for (std::size_t i = 0; i < asked.nqual; ++i) {
    if (!PMIX_CHECK_KEY(&asked.qualifiers[i], PMIX_PSET_NAME)) continue;
    const auto set = given().sets.find(asked.qualifiers[i].value.data.string);
    if (set == given().sets.end()) return false;
    pmix_data_array_t members{};
    members.type = PMIX_PROC;
    members.array = set->second.data();
    members.size = set->second.size();
    return PMIx_Info_load(&found, asked.keys[0], &members, PMIX_DATA_ARRAY) == PMIX_SUCCESS;
  }
  return false;
}

void forget(void* what) {
  auto* const info = static_cast<pmix_info_t*>(what);
  PMIx_Value_destruct(&info->value);
  delete info;
}

pmix_status_t on_query(pmix_proc_t*, pmix_query_t* asked, std::size_t, pmix_info_cbfunc_t done, void* about) {
  if (given().silent) return PMIX_SUCCESS;
  auto* const found = new pmix_info_t{};
  if (!answer(*asked, *found)) {
    delete found;
    return PMIX_ERR_NOT_FOUND;
  }
  if (given().wrapped) {
    pmix_data_array_t both{};
    pmix_info_t inside[] = {asked->qualifiers[0], *found};
    both.type = PMIX_INFO;
    both.array = inside;
    both.size = 2;
    auto* const outside = new pmix_info_t{};
    (void)PMIx_Info_load(outside, PMIX_QUERY_RESULTS, &both, PMIX_DATA_ARRAY);  // copies
    forget(found);
    done(PMIX_SUCCESS, outside, 1, about, forget, outside);
    return PMIX_SUCCESS;
  }
  done(PMIX_SUCCESS, found, 1, about, forget, found);
  return PMIX_SUCCESS;
}

// ---- the job ----------------------------------------------------------------------------------------------------

[[noreturn]] void give_up(const char* what, pmix_status_t why) {
  std::fprintf(stderr, "pmix_host: cannot %s: %s\n", what, PMIx_Error_string(why));
  std::exit(99);
}

void check(const char* what, pmix_status_t s) {
  if (s != PMIX_SUCCESS && s != PMIX_OPERATION_SUCCEEDED) give_up(what, s);
}

void describe_job() {
  std::string peers;
  for (std::uint32_t rank = 0; rank < given().ranks; ++rank) peers += (rank == 0 ? "" : ",") + std::to_string(rank);
  char host[256] = "";
  (void)::gethostname(host, sizeof host - 1);
  char* nodes = nullptr;
  char* processes = nullptr;
  check("describe the node", PMIx_generate_regex(host, &nodes));
  check("describe the ranks", PMIx_generate_ppn(peers.c_str(), &processes));
  std::vector<pmix_info_t> facts;
  const auto say = [&facts](const char* key, const void* value, pmix_data_type_t type) {
    check("describe the job", PMIx_Info_load(&facts.emplace_back(), key, value, type));
  };
  for (const char* each : {PMIX_JOB_SIZE, PMIX_UNIV_SIZE, PMIX_MAX_PROCS, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE})
    say(each, &given().ranks, PMIX_UINT32);
  say(PMIX_LOCAL_PEERS, peers.c_str(), PMIX_STRING);
  say(PMIX_NODE_MAP, nodes, PMIX_REGEX);
  say(PMIX_PROC_MAP, processes, PMIX_REGEX);
  check("register the job", PMIx_server_register_nspace(job, static_cast<int>(given().ranks), facts.data(),
                                                        facts.size(), nullptr, nullptr));
}

pid_t start(pmix_rank_t rank) {
  const pmix_proc_t me = process(job, rank);
  check("register a rank", PMIx_server_register_client(&me, ::getuid(), ::getgid(), nullptr, nullptr, nullptr));
  char** told = nullptr;
  check("prepare a rank", PMIx_server_setup_fork(&me, &told));
  std::vector<char*> environment;  // the first of equal names counts
  for (char** each = told; each != nullptr && *each != nullptr; ++each) environment.push_back(*each);
  for (char** each = ::environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(99);
  ::execve(given().command[0], given().command.data(), environment.data());
  ::_exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  int at = 1;
  for (; at < argc && std::strncmp(argv[at], "--", 2) == 0; ++at) {
    given().wrapped = given().wrapped || std::strcmp(argv[at], "--wrapped") == 0;
    given().silent = given().silent || std::strcmp(argv[at], "--silent") == 0;
  }
  if (at < argc) given().ranks = static_cast<std::uint32_t>(std::stoul(argv[at++]));
  for (; at < argc && std::strcmp(argv[at], "--") != 0; ++at) define(argv[at]);
  given().command.assign(argv + std::min(at + 1, argc), argv + argc + 1);

  pmix_server_module_t module{};
  module.fence_nb = on_fence;
  module.query = on_query;
  check("start", PMIx_server_init(&module, nullptr, 0));
  describe_job();
  std::vector<pid_t> pids;
  for (pmix_rank_t rank = 0; rank < given().ranks; ++rank) pids.push_back(start(rank));
  int exit_status = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    (void)::waitpid(pid, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (exit_status == 0) exit_status = code;
  }
  (void)PMIx_server_finalize();
  return exit_status;
}
