// SPDX-License-Identifier: Apache-2.0
// Goal: a broken invariant of the library's own state ends the process with one line that names it.
// Method: each case breaks one in a forked child, whose standard error must name the condition that does not hold.
#include "core/assert.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "channel/fakes.hpp"
#include "coll/machine.hpp"
#include "coll/memory_operands.hpp"
#include "coll/plan.hpp"
#include "coll/running.hpp"
#include "datatype/copy.hpp"
#include "datatype/copy_experience.hpp"
#include "datatype/cursor.hpp"
#include "p2p/messenger.hpp"
#include "runtime/reclaimer.hpp"
#include "skip.hpp"
#include "sync/fence_def.hpp"
#include "sync/fence_imm_naive.hpp"
#include "sync/fence_imm_opt.hpp"
#include "sync/fence_neighbors.hpp"
#include "sync/hybrid_machine.hpp"
#include "sync/lock_auto.hpp"
#include "sync/lock_cpu.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/lock_model.hpp"
#include "sync/lock_turns.hpp"
#include "sync/reader_hold.hpp"
#include "window/lock_experience.hpp"
#include "window/range_table.hpp"
#include "window/target.hpp"
#include "window/window_core.hpp"
#include "xfer/engine.hpp"
#include "xfer/window_mutex.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

struct child_end {
  bool aborted = false;
  std::string said;  ///< on standard error
};

/// Runs `work` in a child of this process, which leaves no core file.
child_end in_child(void (*work)()) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], STDERR_FILENO);
    work();
    ::_exit(0);
  }
  ::close(ends[1]);
  child_end end;
  char part[512];
  for (ssize_t n = 0; (n = ::read(ends[0], part, sizeof part)) > 0;) end.said.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int how = 0;
  ::waitpid(child, &how, 0);
  end.aborted = WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT;
  return end;
}

struct violation {
  const char* what;
  const char* condition;  ///< a part of it
  void (*commit)();
};

/// Each works on state of its own; all of it is lost with the child.
const violation of_messages[] = {
    {"an entry leaves the table that it has left", "keys_ != 0",
     [] {
       match_table table;
       match_entry e;
       table.add(e);
       table.remove(e);
       table.remove(e);
     }},
    {"a receive that is not posted is taken out", "count_ != 0",
     [] {
       posted_receives posted;
       receive_operation op;
       posted.remove(op);
     }},
    {"an operation gives back a number of another one", "slots_[index].op == &op",
     [] {
       operation_ids ids;
       send_operation owner, other;
       ids.add(owner);
       other.id = owner.id;
       ids.remove(other);
     }},
    {"a send is started while it is under way", "op.ended.load(std::memory_order_relaxed) != 0",
     [] {
       test::fake_pair two;
       messenger m(two.a.ctx);
       send_operation op;
       op.peer = 1;
       op.ended = 0;
       (void)m.send(op);
     }},
    {"an operation is withdrawn that is over", "op.ended.load(std::memory_order_relaxed) == 0",
     [] {
       test::fake_pair two;
       messenger m(two.a.ctx);
       receive_operation op;
       (void)m.withdraw(op, status::revoked);
     }},
    {"a transfer is given back whose pieces are under way", "t.pending == 0",
     [] {
       transfer_pool pool;
       transfer& t = pool.take();
       t.pending = 1;
       pool.give_back(t);
     }},
    {"a list is cut of data of which nothing is left", "left != 0",
     [] {
       piece_transfer t;
       t.cut_next();
     }},
};

const violation of_collectives[] = {
    {"a collective starts that was not prepared", "team_ != nullptr",
     [] {
       coll::plan p({}, 0, 0, 1, false, {});
       coll::running r(p);
       r.start(1);
     }},
    {"a collective without local work leaves the list of those with some", "r.working",
     [] {
       test::fake_pair two;
       messenger m(two.a.ctx);
       coll::machine all(two.a.ctx, m);
       coll::plan p({}, 0, 0, 1, false, {});
       coll::running r(p);
       all.remove_work(r);
     }},
    {"a collective that is over has local work", "!r.over()",
     [] {
       test::fake_pair two;
       messenger m(two.a.ctx);
       coll::machine all(two.a.ctx, m);
       coll::plan p({}, 0, 0, 1, false, {});
       coll::running r(p);
       all.add_work(r);
     }},
};

const violation of_layouts[] = {
    {"a cursor goes on behind the end", "bytes <= remaining_",
     [] {
       cursor at(Layout::contiguous<int>(4));
       at.advance(17);
     }},
    {"a cursor takes no block of a list", "count > 0",
     [] {
       const std::ptrdiff_t offsets[] = {0, 3, 4};
       const std::size_t lengths[] = {1, 1, 2};
       cursor at(Layout::indexed<int>(lengths, offsets));
       at.advance_irregular(0, 0);
     }},
    {"two sides of a copy have not the same bytes", "dst_layout.bytes() == src_layout.bytes()",
     [] {
       int from[4] = {}, to[4] = {};
       copy(to, Layout::contiguous<int>(4), from, Layout::contiguous<int>(3), nullptr);
     }},
    {"a member loads more than its operand has", "offset + bytes <= c.bytes",
     [] {
       std::byte in[16] = {}, slot[16];
       collective_call call;
       call.in = in;
       call.bytes = 8;
       coll::load_operand(slot, call, 4, 8);
     }},
    {"a copy has taken no time", "cost_ns > 0", [] { (void)after_copy({}, copy_way::fabric, 0); }},
    {"a copy has gone a way that its size does not have", "static_cast<std::size_t>(way) < e.ways",
     [] { (void)after_refusal({.ways = 2}, copy_way::shared); }},
};

const violation of_operations[] = {
    {"a record is freed without the progress lock", "ctx_.lock().is_taken()",
     [] {
       test::fake_pair two;
       engine e(two.a.ctx);
       e.free_operation(e.new_operation());
     }},
    {"an operation ends once more than it has pieces", "op.pieces != 0",
     [] {
       test::fake_pair two;
       engine e(two.a.ctx);
       const std::lock_guard guard(two.a.ctx.lock());
       operation_record& op = e.new_operation();
       e.end_piece(op, status::done);
       e.end_piece(op, status::done);
     }},
    {"an operation is under way towards two targets", "op.state == nullptr",
     [] {
       test::fake_pair two;
       engine e(two.a.ctx);
       const std::lock_guard guard(two.a.ctx.lock());
       target_state one, other;
       operation_record& op = e.new_operation();
       e.track(op, one, true);
       e.track(op, other, true);
     }},
    {"an operation that goes by the fabric waits for an acknowledgement", "op.by_message",
     [] {
       test::fake_pair two;
       engine e(two.a.ctx);
       const std::lock_guard guard(two.a.ctx.lock());
       e.await_acknowledgement(e.new_operation(), two.a.ctx.peer_of(1), nullptr);
     }},
    {"a request of another engine is freed", "node->owner == this",
     [] {
       test::fake_pair two;
       engine e(two.a.ctx);
       const std::lock_guard guard(two.a.ctx.lock());
       request_node node;
       (void)e.free_request(&node);
     }},
    {"a thread leaves a window in which it is not", "depth_ != 0",
     [] {
       window_mutex mutex;
       mutex.exit();
     }},
};

const violation of_channels[] = {
    {"a message goes to a rank that the job does not have", "to < size()",
     [] {
       test::fake_pair two;
       two.a.ctx.send(2, message::notify, {}, {});
     }},
    {"a user without a duty is on duty", "duties_.index_of(self) < duties_.size()",
     [] {
       test::fake_pair two;
       two.a.ctx.on_duty(&two, true);
     }},
    {"a handler runs without the progress lock", "me.ctx_.is_guarded()",
     [] {
       test::fake_pair two(std::map<std::string, std::string>{{"RMA_THREADS", "multiple"}});
       engine e(two.a.ctx);
       two.a.ctx.run_handler(1, message::operation, {});
     }},
    {"a message comes from a rank that the job does not have", "source < me.ctx_.size()",
     [] {
       test::fake_pair two;
       engine e(two.a.ctx);
       two.a.ctx.run_handler(2, message::reply, {});
     }},
    {"a rank tells itself of an object that it has dropped", "source != me.ctx_.rank()",
     [] {
       test::fake_pair two;
       reclaimer objects(two.a.ctx);
       two.a.ctx.run_handler(two.a.ctx.rank(), message::dropped, {});
     }},
    {"a message's record is given back twice", "others.empty()",
     [] {
       message_pool pool;
       message_pool::record& r = pool.take(1, {}, {});
       pool.give_back(r);
       pool.give_back(r);
     }},
    {"a transfer joins two queues of the bulk channel", "!turn.in_queue.is_linked()",
     [] {
       test::fake_pair two;
       bulk_turn turn;
       turn.post = [](bulk_turn&) { return bulk_turn::progress::waits; };
       turn.posted = [](bulk_turn&) {};
       two.a.ctx.bulk().join_sends(1, turn);
       two.a.ctx.bulk().join_receives(1, turn);
     }},
};

const violation of_windows[] = {
    {"more of a target's operations end than were posted", "fabric_pending.load(std::memory_order_relaxed) != 0",
     [] {
       target_state state;
       state.end_posted();
     }},
    {"a success is counted as a failure", "!ok(why)",
     [] {
       target_state state;
       state.fail(status::done);
     }},
    {"a range is held before it is asked for", "!wanted.held",
     [] {
       range_table table;
       std::vector<range_answer> answers;
       table.request({.bytes = 8, .held = true}, answers);
     }},
    {"more synchronizations end than have begun", "tasks != 0",
     [] {
       window_core w;
       w.count_task(false);
     }},
    {"a fence takes a step after its end", "now == last",
     [] { (void)after_imm_naive(fence_phase::over, assertion::none); }},
};

/// A lock manager's place that asks for the lock again when it is given back.
struct insatiable_place {
  lock_turns<std::deque<test::model_request>> turns{};

  static lock_turn take(const test::model_request&) { return lock_turn::holds; }
  static bool take_beside(const test::model_request&) { return false; }
  static void end_wait() {}
  static void run(const test::model_request&) {}
  void give_back(const test::model_request& r) { turns.enqueue(test::model_request(r)); }
  static void answer(const test::model_request&, lock_answer, int) {}
};

const violation of_locks[] = {
    {"a lock manager is busy after its window has closed", "!busy()",
     [] {
       insatiable_place place;
       place.turns.enqueue({});
       (void)place.turns.serve(place);
       place.turns.close(place, -1);
     }},
    {"an epoch that was sent whole has no answer", "answer == lock_step::held",
     [] { (void)after_epoch_answer(lock_step::not_yet); }},
    {"fence def takes a step after its end", "now == fence_phase::arrive",
     [] { (void)after_def(fence_phase::over, assertion::none); }},
    {"fence def counts what no rank has sent", "!has(promises, no_precede)",
     [] { (void)after_def(fence_phase::count, assertion::no_precede); }},
    {"a fence among neighbors takes a step after its end", "now == fence_phase::flags",
     [] { (void)after_neighbors(fence_phase::over, assertion::none); }},
    {"a fence that places its operations takes a step after its end", "now == fence_phase::begin",
     [] { (void)after_placed(fence_phase::over, assertion::none); }},
    {"an atomic takes less than no time", "took_ns >= 0", [] { (void)after_atomic({}, -1); }},
    {"a lock manager answers instead of no atomic", "atomics > 0", [] { (void)after_answer({}, 1, 0); }},
    {"a lock migrates after more epochs than it ever waits for", "e.migrate_after <= migrate_after_max",
     [] { (void)after_no({.migrate_after = migrate_after_max + 1}); }},
    {"a fence opens an epoch that no operation follows", "now == last",
     [] { (void)after_imm_opt(fence_phase::barrier, assertion::no_succeed); }},
    {"waiters are woken after all have been", "now != wake_stage::over", [] { (void)after(wake_stage::over, false); }},
    {"a stage that tests nothing has found something", "now == wake_stage::look",
     [] { (void)after(wake_stage::ring, true); }},
    {"a hybrid lock's stage is followed by another before its end", "s != lock_step::not_yet",
     [] { (void)after(hybrid_stage::cpu, lock_step::not_yet, {}); }},
    {"another one than the lock manager lets a lock migrate", "now == manager",
     [] { (void)after(hybrid_stage::cpu, lock_step::migrates, {}); }},
    {"a request for a lock counts nothing", "weight > 0",
     [] { (void)accounted({}, lock_policy::adaptive, 0, false, migration_cost_min, 0); }},
    {"a lock at home migrates to it", "lock_away | lock_migrating", [] { (void)mended(lock_migrating, 0); }},
    {"readers hold the word beside a dead writer", "!readers_in_word(r.phase)",
     [] {
       (void)step(readers_word{.phase = readers_phase::held, .attempt = {}, .dead_hold = 1}, readers_event::wanted);
     }},
    {"a dead writer's hold is given back by nobody", "r.phase == asking",
     [] {
       (void)step(readers_word{.phase = readers_phase::pausing, .attempt = {}, .dead_hold = 1}, std::uint64_t{0});
     }},
};

template <std::size_t N>
void check_all(const violation (&all)[N]) {
#if !defined(RMA_ASSERTS)
  (void)all;
  return test::skip("this build has no assertions: RMA_ASSERTS=ON");
#else
  for (const violation& each : all) {
    const child_end end = in_child(each.commit);
    CAPTURE(each.what, each.condition, end.said);
    CHECK(end.aborted);
    CHECK(end.said.starts_with("rma: internal error: "));
    CHECK(end.said.find(each.condition) != std::string::npos);
    CHECK(end.said.find(" does not hold at ") != std::string::npos);
  }
#endif
}

}  // namespace

TEST_CASE("broken invariants of messages are named", "[asserts]") { check_all(of_messages); }
TEST_CASE("broken invariants of collectives are named", "[asserts]") { check_all(of_collectives); }
TEST_CASE("broken invariants of layouts and operands are named", "[asserts]") { check_all(of_layouts); }
TEST_CASE("broken invariants of operations are named", "[asserts]") { check_all(of_operations); }
TEST_CASE("broken invariants of the progress context are named", "[asserts]") { check_all(of_channels); }
TEST_CASE("broken invariants of windows and fences are named", "[asserts]") { check_all(of_windows); }
TEST_CASE("broken invariants of locks and of fences' steps are named", "[asserts]") { check_all(of_locks); }
