// SPDX-License-Identifier: Apache-2.0
/// \file
/// The launcher's process sets, asked of its daemon on this node each time: they may change.
///
///   PMIX_QUERY_PSET_NAMES                                -> "name,name"
///   PMIX_QUERY_PSET_MEMBERSHIP of one, PMIX_PSET_NAME    -> the processes in it
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>

#include "boot/pmix_session.hpp"
#include "rma/error.hpp"

namespace rma::boot {
namespace {

// By their text: headers before PMIx 4 have not got them all.
constexpr const char* names_key = "pmix.qry.psets";       // PMIX_QUERY_PSET_NAMES
constexpr const char* members_key = "pmix.qry.pmems";     // PMIX_QUERY_PSET_MEMBERSHIP
constexpr const char* set_name_key = "pmix.pset.nm";      // PMIX_PSET_NAME
constexpr const char* from_server_key = "pmix.qry.rfsh";  // PMIX_QUERY_REFRESH_CACHE

/// A question and its answer. PMIx's thread has a share of it: the answer may come after the wait has ended.
struct question {
  question(const char* wanted, std::string about) : key(wanted), set(std::move(about)) {
    // PMIx keeps answers, by their key alone; what is asked for is how it is now, and of this set.
    how[0] = directive(from_server_key);
    how[1] = directive(set_name_key);
    how[1].value.type = PMIX_STRING;
    how[1].value.data.string = set.data();
    query.keys = keys;
    query.qualifiers = how;
    query.nqual = set.empty() ? 1 : 2;
  }
  question(const question&) = delete;
  question& operator=(const question&) = delete;

  std::string key;
  std::string set;
  char* keys[2] = {key.data(), nullptr};
  pmix_info_t how[2]{};
  pmix_query_t query{};

  std::mutex lock;  ///< guards the members below
  std::condition_variable answered;
  bool over = false;
  pmix_status_t outcome = PMIX_SUCCESS;
  std::string text;
  std::vector<pmix_proc_t> processes;
};
using shared_question = std::shared_ptr<question>;

/// Launchers give the value alone, or in an array together with what was asked.
void read_answer(question& asked, const pmix_info_t* given, std::size_t count) {
  for (const pmix_info_t* each = given; each != given + count; ++each) {
    const pmix_value_t& value = each->value;
    const pmix_data_array_t* const array = value.type == PMIX_DATA_ARRAY ? value.data.darray : nullptr;
    if (array != nullptr && array->type == PMIX_INFO) {
      read_answer(asked, static_cast<const pmix_info_t*>(array->array), array->size);
    } else if (each->key != asked.key) {
      continue;
    } else if (value.type == PMIX_STRING && value.data.string != nullptr) {
      asked.text = value.data.string;
    } else if (array != nullptr && array->type == PMIX_PROC) {
      const auto* const first = static_cast<const pmix_proc_t*>(array->array);
      asked.processes.assign(first, first + array->size);
    }
  }
}

/// Called by PMIx's thread; `mine` is its share of the question.
void take_answer(pmix_status_t outcome, pmix_info_t* given, std::size_t count, void* mine,
                 pmix_release_cbfunc_t release, void* released) {
  const std::unique_ptr<shared_question> share(static_cast<shared_question*>(mine));
  question& asked = **share;
  const std::lock_guard hold(asked.lock);
  asked.outcome = outcome;
  try {
    read_answer(asked, given, count);
  } catch (const std::bad_alloc&) {
    asked.outcome = PMIX_ERR_NOMEM;
  }
  if (release != nullptr) release(released);
  asked.over = true;
  asked.answered.notify_all();
}

/// Launchers without process sets say that they do not know the question, each in its own way; PMIx says for those that
/// answer none at all that they cannot reach anybody who would.
bool means_none(pmix_status_t outcome) {
  return outcome == PMIX_ERR_NOT_FOUND || outcome == PMIX_ERR_NOT_SUPPORTED || outcome == PMIX_ERR_BAD_PARAM ||
         outcome == PMIX_ERR_UNREACH;
}

shared_question query(const pmix_calls& pmix, const char* key, const std::string& set, int timeout_s) {
  const auto asked = std::make_shared<question>(key, set);
  auto share = std::make_unique<shared_question>(asked);
  std::unique_lock hold(asked->lock, std::defer_lock);
  pmix_status_t outcome = pmix.PMIx_Query_info_nb(&asked->query, 1, take_answer, share.get());
  if (outcome == PMIX_SUCCESS) {
    (void)share.release();
    hold.lock();
    if (!asked->answered.wait_for(hold, std::chrono::seconds(timeout_s), [&] { return asked->over; })) {
      throw Error(status::bad_boot, "the PMIx launcher has not said within " + std::to_string(timeout_s) +
                                        " s what process sets there are");
    }
    outcome = asked->outcome;
  }
  const bool partly = outcome == PMIX_ERR_PARTIAL_SUCCESS || outcome == PMIX_QUERY_PARTIAL_SUCCESS;
  if (outcome != PMIX_SUCCESS && !partly && !means_none(outcome)) {
    throw Error(status::bad_boot, std::string("the PMIx launcher cannot say what process sets there are (") +
                                      pmix.PMIx_Error_string(outcome) + ")");
  }
  return asked;
}

}  // namespace

std::vector<std::string> pmix_session::process_sets(int timeout_s) const {
  const auto asked = query(pmix_, names_key, "", timeout_s);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < asked->text.size();) {
    const std::size_t end = std::min(asked->text.find(',', at), asked->text.size());
    if (end > at) names.push_back(asked->text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::vector<int> pmix_session::members_of(const std::string& set, int timeout_s) const {
  const auto asked = query(pmix_, members_key, set, timeout_s);
  std::vector<int> ranks;
  for (const pmix_proc_t& each : asked->processes) {
    if (std::strncmp(each.nspace, me_.nspace, PMIX_MAX_NSLEN) != 0)
      throw Error(status::not_supported, "process set '" + set + "' has members that are no ranks of this job");
    if (each.rank == PMIX_RANK_WILDCARD) {
      ranks.resize(static_cast<std::size_t>(size_));
      std::iota(ranks.begin(), ranks.end(), 0);
      return ranks;
    }
    if (each.rank >= static_cast<pmix_rank_t>(size_))
      throw Error(status::bad_boot, "the PMIx launcher names members of process set '" + set + "' that do not exist");
    ranks.push_back(static_cast<int>(each.rank));
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace rma::boot
