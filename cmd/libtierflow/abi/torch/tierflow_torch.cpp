/* The backend tierflow of torch.distributed, for CPU tensors. `tierflow torch build` compiles it against the torch that is
 * there. A group is a communicator of libtierflow: that of all ranks joins by torch's store, groups of them are made
 * from it. Collectives of a group run in the order of their starts: in the thread that waits for one, else in the
 * group's own. Sends and receives are started at once. */
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <sstream>
#include <thread>

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/utils/pybind.h>
#include <pybind11/chrono.h>

#include "tierflow.h"

/* ---- versions of torch: all that differs is here */

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
using Base = c10d::Backend; /* a ProcessGroup has one for each kind of device */
#else
using Base = c10d::ProcessGroup;
#endif

static int type_of_version(at::ScalarType t) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
	switch (t) {
	case at::kUInt16: return TF_U16;
	case at::kUInt32: return TF_U32;
	case at::kUInt64: return TF_U64;
	default: break;
	}
#endif
	(void)t;
	return 0;
}

namespace {

using at::Tensor;
using c10d::OpType;
using c10d::ReduceOp;
using c10d::Work;
using Tensors = std::vector<Tensor>;
using Millis = std::chrono::milliseconds;
template <typename T> using Ptr = c10::intrusive_ptr<T>;

/* ---- the library. It is loaded with the first group: a process may fork before, and import this module. */

#define FUNCTIONS(F) \
	F(tf_open) F(tf_close) F(tf_draw) F(tf_sub) F(tf_call_within) F(tf_start_send) F(tf_start_recv) F(tf_exchange) \
	F(tf_wait) F(tf_wait_for) F(tf_done) F(tf_abort) F(tf_error) F(tf_abi)

struct {
#define F(name) decltype(&::name) name;
	FUNCTIONS(F)
#undef F
} tf;

/* library_path is TIERFLOW_LIB, or libtierflow.so beside this file. */
std::string library_path() {
	const char *given = getenv("TIERFLOW_LIB");
	if (given && *given) return given;
	Dl_info self;
	if (!dladdr(&tf, &self)) return "libtierflow.so";
	std::string file = self.dli_fname;
	return file.substr(0, file.rfind('/') + 1) + "libtierflow.so";
}

/* load loads it, once. Go's runtime takes over signals; those of crashes are given back, so that reports are Python's. */
void load() {
	static std::mutex mutex;
	std::lock_guard<std::mutex> lock(mutex);
	if (tf.tf_abi) return;
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE};
	struct sigaction kept[3];
	std::string path = library_path();
	for (int i = 0; i < 3; i++) sigaction(crashes[i], nullptr, &kept[i]);
	void *lib = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	for (int i = 0; i < 3; i++) sigaction(crashes[i], &kept[i], nullptr);
	if (!lib) throw std::runtime_error(std::string("tierflow: ") + dlerror() + "; TIERFLOW_LIB says where it is");
#define F(name) \
	if (!(tf.name = reinterpret_cast<decltype(tf.name)>(dlsym(lib, #name)))) throw std::runtime_error("tierflow: " + path + " has no " #name);
	FUNCTIONS(F)
#undef F
	int abi = tf.tf_abi();
	if (abi != TF_ABI) {
		tf.tf_abi = nullptr;
		throw std::runtime_error("tierflow: " + path + " has TF_ABI " + std::to_string(abi) + ", tierflow_torch " + std::to_string(TF_ABI) + ": build both from one tierflow");
	}
}

/* check throws what the library says of a failure. */
void check(int failed) {
	if (failed) throw std::runtime_error(std::string("tierflow: ") + tf.tf_error());
}

/* text_of is an exception's, without torch's list of frames. */
std::string text_of(const std::exception &e) {
	const auto *error = dynamic_cast<const c10::Error *>(&e);
	return error ? error->what_without_backtrace() : e.what();
}

template <typename... Parts> [[noreturn]] void refuse(const Parts &...parts) {
	std::ostringstream text;
	text << "tierflow: ";
	(text << ... << parts);
	throw std::invalid_argument(text.str());
}

/* ---- tensors */

/* Elements are what the library calls a tensor's elements. */
struct Elements {
	int type;
	int64_t each; /* of them in one of the tensor's */
};

/* elements_of is for calls that only move data: what the library has no type for moves as bytes. */
Elements elements_of(const Tensor &t) {
	switch (t.scalar_type()) {
	case at::kByte: case at::kBool: return {TF_U8, 1};
	case at::kChar: return {TF_I8, 1};
	case at::kShort: return {TF_I16, 1};
	case at::kInt: return {TF_I32, 1};
	case at::kLong: return {TF_I64, 1};
	case at::kHalf: return {TF_F16, 1};
	case at::kBFloat16: return {TF_BF16, 1};
	case at::kFloat: return {TF_F32, 1};
	case at::kDouble: return {TF_F64, 1};
	case at::kComplexFloat: return {TF_C64, 1};
	case at::kComplexDouble: return {TF_C128, 1};
	default: break;
	}
	if (int type = type_of_version(t.scalar_type())) return {type, 1};
	return {TF_U8, static_cast<int64_t>(t.element_size())};
}

/* op_of is the operation of a reduction. Truth values are sums and products of bits. */
int op_of(const char *call, const ReduceOp &op, const Tensor &t) {
	const auto type = t.scalar_type();
	const bool integer = at::isIntegralType(type, true), truth = type == at::kBool;
	if (elements_of(t).each != 1) refuse(call, ": tensors of ", type, " can't be reduced");
	const auto only = [&](bool allowed, int result, const char *name, const char *whose) {
		if (!allowed) refuse(call, ": ReduceOp.", name, " of ", type, "; only ", whose, " have it");
		return result;
	};
	const auto kind = static_cast<ReduceOp::RedOpType>(op);
	switch (kind) {
	case ReduceOp::SUM: return truth ? TF_MAX : TF_SUM;
	case ReduceOp::PRODUCT: return truth ? TF_MIN : TF_PROD;
	case ReduceOp::AVG: return only(!integer, TF_AVERAGE, "AVG", "real and complex numbers");
	case ReduceOp::MIN: return only(!at::isComplexType(type), TF_MIN, "MIN", "integers and real numbers");
	case ReduceOp::MAX: return only(!at::isComplexType(type), TF_MAX, "MAX", "integers and real numbers");
	case ReduceOp::BAND: return only(integer, TF_BAND, "BAND", "integers");
	case ReduceOp::BOR: return only(integer, TF_BOR, "BOR", "integers");
	case ReduceOp::BXOR: return only(integer, TF_BXOR, "BXOR", "integers");
	default: refuse(call, ": reduction ", static_cast<int>(kind), "; there are SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR");
	}
}

void check_dense(const char *call, const Tensor &t) {
	if (t.layout() != at::kStrided || !t.device().is_cpu())
		refuse(call, ": a ", t.layout(), " tensor on ", t.device(), "; tierflow has dense tensors on the CPU: for others use a backend that has them");
}

/* check_like holds that tensors have the size and type of one, as their blocks do. */
void check_like(const char *call, const Tensors &list, const Tensor &one) {
	for (size_t i = 0; i < list.size(); i++) {
		check_dense(call, list[i]);
		if (list[i].scalar_type() != one.scalar_type() || list[i].numel() != one.numel())
			refuse(call, ": tensor ", i, " of a list has ", list[i].numel(), " elements of ", list[i].scalar_type(), "; the other side has ", one.numel(), " of ", one.scalar_type());
	}
}

const Tensor &only(const char *call, const Tensors &list) {
	if (list.size() != 1) refuse(call, ": ", list.size(), " tensors; a rank has one");
	check_dense(call, list[0]);
	return list[0];
}

const Tensors &only_list(const char *call, const std::vector<Tensors> &lists, int size) {
	if (lists.size() != 1 || lists[0].size() != static_cast<size_t>(size))
		refuse(call, ": ", lists.size(), " lists of ", lists.empty() ? 0 : lists[0].size(), " tensors; a rank has one list, of a tensor for each of ", size, " ranks");
	return lists[0];
}

/* in_line reports whether a tensor's memory has its elements in order, and nothing else. */
bool in_line(const Tensor &t) { return t.is_contiguous() && !t.is_conj() && !t.is_neg(); }

/* given is a tensor's elements in order: itself, or a copy. */
Tensor given(const Tensor &t) { return in_line(t) ? t : t.resolve_conj().resolve_neg().contiguous(); }

/* room is where a result goes before deliver; keep: the tensor's elements are there. */
Tensor room(const Tensor &t, bool keep = false) { return in_line(t) ? t : keep ? given(t).clone(at::MemoryFormat::Contiguous) : at::empty(t.sizes(), t.options().memory_format(at::MemoryFormat::Contiguous)); }

void deliver(const Tensor &t, const Tensor &result) {
	if (!t.is_same(result)) t.copy_(result.view(t.sizes()));
}

char *bytes_of(const Tensor &t) { return static_cast<char *>(t.data_ptr()); }

/* apart is a given tensor that has no byte in common with the result. */
Tensor apart(const Tensor &from, const Tensor &result) {
	const char *a = bytes_of(from), *b = bytes_of(result);
	return a < b + result.nbytes() && b < a + from.nbytes() ? from.clone() : from;
}

/* flat is the elements of several tensors of a type, one after the other. */
Tensor flat(const Tensors &list) {
	Tensors parts;
	for (const auto &t : list) parts.push_back(given(t).reshape({-1}));
	return at::cat(parts);
}

/* spread copies such elements to the tensors, beginning at one. */
void spread(const Tensor &from, int64_t at, const Tensors &list) {
	for (const auto &t : list) {
		t.copy_(from.narrow(0, at, t.numel()).view(t.sizes()));
		at += t.numel();
	}
}

/* ---- a group's communicator */

/* World is a job that this process has joined. */
struct World {
	std::atomic<tf_comm *> open{nullptr};
	int64_t round = 0; /* of those that met at its store */
	pid_t process = getpid();

	~World() { close(); }

	/* close ends all communicators of the job. Other ranks wait for it, a while, in theirs. */
	void close() {
		if (tf_comm *c = open.exchange(nullptr); c && process == getpid()) tf.tf_close(c);
	}
};

std::mutex worlds_mutex;
std::weak_ptr<World> default_world; /* groups are made from it, while it is there */

/* leave_default closes the job of an earlier default group that was destroyed, and of which an object is still there. */
void leave_default() {
	std::shared_ptr<World> world;
	{
		std::lock_guard<std::mutex> lock(worlds_mutex);
		world = default_world.lock();
		default_world.reset();
	}
	if (world) world->close();
}

/* Meeting is how ranks share rank 0's bytes: by the store. */
struct Meeting {
	Ptr<c10d::Store> store;
	std::string key;
	int rank;
	std::string error;
};

int share(void *bytes, int n, void *arg) {
	auto *m = static_cast<Meeting *>(arg);
	auto *b = static_cast<uint8_t *>(bytes);
	try {
		if (m->rank == 0) {
			m->store->set(m->key, std::vector<uint8_t>(b, b + n));
		} else {
			auto got = m->store->get(m->key);
			if (got.size() != static_cast<size_t>(n)) throw std::runtime_error("rank 0 has given " + std::to_string(got.size()) + " bytes, not " + std::to_string(n));
			std::copy(got.begin(), got.end(), b);
		}
		return 0;
	} catch (const std::exception &e) {
		m->error = text_of(e);
		return 1;
	}
}

/* gather_ranks waits until all ranks have come to the store, and returns how often as many came before. */
int64_t gather_ranks(c10d::Store &store, int rank, int size, Millis timeout) {
	const int64_t round = (store.add("tierflow/came", 1) - 1) / size;
	std::vector<std::string> keys;
	for (int r = 0; r < size; r++) keys.push_back("tierflow/" + std::to_string(round) + "/rank/" + std::to_string(r));
	store.set(keys[rank], {1});
	try {
		store.wait(keys, timeout);
	} catch (const std::exception &e) {
		std::string missing;
		for (int r = 0; r < size; r++) {
			bool here = true;
			try { here = store.check({keys[r]}); } catch (const std::exception &) {}
			if (!here) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
		}
		if (missing.empty()) throw;
		throw std::runtime_error("tierflow: rank " + std::to_string(rank) + " of " + std::to_string(size) + " has waited " + std::to_string(timeout.count()) +
			" ms to join; missing: rank " + missing + " (" + text_of(e) + ")");
	}
	return round;
}

std::shared_ptr<World> join(const Ptr<c10d::Store> &store, int rank, int size, Millis timeout) {
	load();
	auto world = std::make_shared<World>();
	world->round = gather_ranks(*store, rank, size, timeout);
	Meeting meeting{store, "tierflow/" + std::to_string(world->round) + "/invitation", rank, ""};
	tf_config config = {};
	config.abi = TF_ABI, config.rank = rank, config.size = size, config.share = share, config.arg = &meeting;
	tf_comm *comm;
	if (tf.tf_open(&config, &comm)) {
		const std::string why = tf.tf_error();
		throw std::runtime_error("tierflow: " + why + (meeting.error.empty() ? "" : ": " + meeting.error));
	}
	world->open = comm;
	return world;
}

/* sub makes the communicator of a group of the default group's ranks. */
tf_comm *sub(World &world, c10d::Store &store, int rank, const std::vector<int64_t> &ranks) {
	const std::string key = "tierflow/" + std::to_string(world.round) + "/group";
	uint64_t id;
	if (rank == 0) {
		check(tf.tf_draw(world.open, &id));
		const std::string text = std::to_string(id);
		store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
	} else {
		const auto got = store.get(key);
		id = std::stoull(std::string(got.begin(), got.end()));
	}
	std::vector<int> list(ranks.begin(), ranks.end());
	tf_comm *made;
	check(tf.tf_sub(world.open, id, list.data(), static_cast<int>(list.size()), &made));
	return made;
}

class Call;
class Message;

/* Line is a group's communicator, with what has been started on it and hasn't ended. */
struct Line {
	std::shared_ptr<World> world;
	tf_comm *comm = nullptr;
	bool part = false; /* of the default group */
	pid_t process = getpid();

	std::mutex mutex;
	std::condition_variable changed;
	std::deque<Ptr<Call>> calls;  /* that nobody runs yet */
	std::vector<Ptr<Message>> messages;
	bool busy = false, closed = false;
	std::thread worker;

	void add(Ptr<Call> call);
	void add(Ptr<Message> message);
	bool step(std::unique_lock<std::mutex> &lock);
	void work();
	void close();
};

/* Pending is what calls and messages have in common: a future, beside what torch has itself. */
class Pending : public Work {
public:
	Pending(int rank, OpType type, const char *title, const Tensors &inputs, std::vector<Tensors> outputs)
		: Work(rank, type, title, c10::optional<Tensors>(inputs)), outputs_(std::move(outputs)),
		  future_(c10::make_intrusive<c10::ivalue::Future>(outputs_.size() > 1
			  ? c10::TypePtr(c10::ListType::create(c10::ListType::create(c10::TensorType::get())))
			  : c10::TypePtr(c10::ListType::create(c10::TensorType::get())))) {}

	Ptr<c10::ivalue::Future> getFuture() override { return future_; }

	Tensors result() override {
		if (outputs_.size() > 1) refuse("result of several lists: use get_future");
		return outputs_.empty() ? Tensors() : outputs_[0];
	}

protected:
	/* end tells the future first, as waiting threads may go on at once. */
	void end(std::exception_ptr failed) {
		if (failed)
			future_->setError(failed);
		else if (outputs_.size() > 1)
			future_->markCompleted(c10::IValue(outputs_));
		else
			future_->markCompleted(c10::IValue(outputs_.empty() ? Tensors() : outputs_[0]));
		finish(failed);
	}

	std::vector<Tensors> outputs_;
	Ptr<c10::ivalue::Future> future_;
};

/* Call is a collective. */
class Call : public Pending {
public:
	using Body = std::function<void(tf_comm *)>;

	Call(int rank, OpType type, const char *title, const Tensors &inputs, std::vector<Tensors> outputs, Body body)
		: Pending(rank, type, title, inputs, std::move(outputs)), body_(std::move(body)) {}

	void run() {
		std::exception_ptr failed;
		try {
			at::NoGradGuard no_grad; /* results may go to leaves */
			body_(line_->comm);
		} catch (...) {
			failed = std::current_exception();
		}
		body_ = nullptr;
		end(failed);
		over_ = true;
	}

	/* wait runs the calls that are first, unless others do. With a limit it leaves that to the worker. */
	bool wait(Millis timeout = kNoTimeout) override {
		if (timeout != kNoTimeout) return Work::wait(timeout);
		std::unique_lock<std::mutex> lock(line_->mutex);
		while (!over_)
			if (!line_->step(lock)) line_->changed.wait(lock);
		lock.unlock();
		return Work::wait();
	}

	std::shared_ptr<Line> line_;

private:
	Body body_;
	std::atomic<bool> over_{false};
};

/* Message is a send or receive. */
class Message : public Pending {
public:
	Message(int rank, OpType type, const char *title, const Tensor &t, bool receives)
		: Pending(rank, type, title, receives ? Tensors() : Tensors{t}, {{t}}), tensor_(t), buffer_(receives ? room(t) : given(t)) {}

	bool isCompleted() override {
		std::lock_guard<std::mutex> lock(ending_);
		if (!over_ && tf.tf_done(1, &run_) == 0) conclude(tf.tf_wait(run_));
		return over_;
	}

	bool wait(Millis timeout = kNoTimeout) override {
		await(timeout == kNoTimeout ? limit_ : timeout);
		return Work::wait();
	}

	void await(Millis timeout) {
		std::lock_guard<std::mutex> lock(ending_);
		if (over_) return;
		int done = 0;
		const int failed = tf.tf_wait_for(run_, std::chrono::nanoseconds(timeout).count(), &done);
		if (!failed && !done)
			throw std::runtime_error("tierflow: " + what_ + " has waited " + std::to_string(timeout.count()) + " ms");
		conclude(failed);
	}

	/* getFuture leaves the waiting to a thread of its own: messages end in any order. */
	Ptr<c10::ivalue::Future> getFuture() override {
		if (!threaded_.exchange(true))
			std::thread([self = Ptr<Message>::unsafe_reclaim_from_nonowning(this)] {
				try { self->await(self->limit_); } catch (...) { self->future_->setErrorIfNeeded(std::current_exception()); }
			}).detach();
		return Pending::getFuture();
	}

	int sourceRank() const override { return status_.source; }

	Tensor tensor_, buffer_;
	tf_run *run_ = nullptr;
	tf_status status_ = {0, -1};
	Millis limit_{0};
	std::string what_;
	std::shared_ptr<Line> line_;

private:
	/* conclude is once, at the end of the run. */
	void conclude(int failed) {
		std::exception_ptr why;
		try {
			check(failed);
			at::NoGradGuard no_grad;
			if (!tensor_.is_same(buffer_) && opType_ != OpType::SEND) tensor_.copy_(buffer_);
		} catch (...) {
			why = std::current_exception();
		}
		over_ = true;
		end(why);
	}

	std::mutex ending_;
	std::atomic<bool> over_{false}, threaded_{false};
};

void Line::add(Ptr<Call> call) {
	std::lock_guard<std::mutex> lock(mutex);
	if (closed) throw std::runtime_error("tierflow: the process group was destroyed");
	if (!worker.joinable()) worker = std::thread([this] { work(); });
	calls.push_back(std::move(call));
	changed.notify_one();
}

/* add keeps a message until it has ended: its buffers must stay. */
void Line::add(Ptr<Message> message) {
	std::lock_guard<std::mutex> lock(mutex);
	messages.erase(std::remove_if(messages.begin(), messages.end(), [](const Ptr<Message> &m) { return m->isCompleted(); }), messages.end());
	messages.push_back(std::move(message));
}

/* step runs the first call. It reports whether there was one, and nobody ran another. */
bool Line::step(std::unique_lock<std::mutex> &lock) {
	if (busy || calls.empty()) return false;
	busy = true;
	{
		auto call = std::move(calls.front());
		calls.pop_front();
		lock.unlock();
		call->run();
	}
	lock.lock();
	busy = false;
	changed.notify_all();
	return true;
}

/* work is the worker's. */
void Line::work() {
	std::unique_lock<std::mutex> lock(mutex);
	while (!closed || !calls.empty())
		if (!step(lock)) changed.wait(lock);
}

/* close waits for all calls, and leaves. */
void Line::close() {
	if (process != getpid()) { /* forked off: it has neither the worker nor a place in the job */
		if (worker.joinable()) worker.detach();
		return;
	}
	{
		std::lock_guard<std::mutex> lock(mutex);
		if (closed) return;
		closed = true;
		changed.notify_all();
	}
	if (worker.joinable()) {
		if (worker.get_id() == std::this_thread::get_id())
			worker.detach();
		else
			worker.join();
	}
	for (auto &m : messages)
		if (!m->isCompleted()) try { m->await(Millis(1000)); } catch (const std::exception &) {}
	messages.clear();
	if (part)
		tf.tf_close(comm);
	else
		world->close(); /* also if objects of its groups are still there */
	world.reset();
}

/* ---- the process group */

std::mutex lines_mutex;
std::vector<std::weak_ptr<Line>> lines; /* of groups that are there */

class ProcessGroupTierflow : public Base {
public:
	ProcessGroupTierflow(const Ptr<c10d::Store> &store, int rank, int size, Millis timeout, const std::vector<int64_t> &ranks)
		: Base(rank, size), line_(std::make_shared<Line>()), timeout_(timeout) {
		std::shared_ptr<World> world;
		if (!ranks.empty()) {
			std::lock_guard<std::mutex> lock(worlds_mutex);
			world = default_world.lock();
		}
		if (world) {
			line_->comm = sub(*world, *store, rank, ranks);
			line_->part = true;
		} else {
			if (ranks.empty()) leave_default();
			world = join(store, rank, size, timeout);
			line_->comm = world->open;
			std::lock_guard<std::mutex> lock(worlds_mutex);
			if (ranks.empty()) default_world = world;
		}
		line_->world = std::move(world);
		std::lock_guard<std::mutex> lock(lines_mutex);
		lines.push_back(line_);
		init();
	}

	~ProcessGroupTierflow() override {
		c10::optional<py::gil_scoped_release> released; /* callbacks of futures may need it */
		if (Py_IsInitialized() && PyGILState_Check()) released.emplace();
		line_->close();
	}

	const std::string getBackendName() const override { return "tierflow"; }

	Ptr<Work> broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override {
		const Tensor t = only("broadcast", tensors);
		check_root("broadcast", opts.rootRank);
		return start(OpType::BROADCAST, "tierflow:broadcast", tensors, {tensors}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor data = room(t, true);
			run(comm, TF_BCAST, elements_of(t), 0, opts.rootRank, t.numel(), nullptr, data, ns);
			if (rank_ != opts.rootRank) deliver(t, data);
		});
	}

	Ptr<Work> allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override {
		const Tensor t = only("allreduce", tensors);
		const int op = op_of("allreduce", opts.reduceOp, t);
		return start(OpType::ALLREDUCE, "tierflow:all_reduce", tensors, {tensors}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor data = room(t, true);
			run_in_place(comm, TF_ALLREDUCE, elements_of(t), op, 0, t.numel(), data, ns);
			deliver(t, data);
		});
	}

	Ptr<Work> allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts) override {
		check_kind("allreduce_coalesced", tensors);
		const int op = op_of("allreduce_coalesced", opts.reduceOp, tensors[0]);
		return start(OpType::ALLREDUCE_COALESCED, "tierflow:all_reduce", tensors, {tensors}, [=, list = tensors, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor data = flat(list);
			run_in_place(comm, TF_ALLREDUCE, elements_of(data), op, 0, data.numel(), data, ns);
			spread(data, 0, list);
		});
	}

	Ptr<Work> reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override {
		const Tensor t = only("reduce", tensors);
		check_root("reduce", opts.rootRank);
		const int op = op_of("reduce", opts.reduceOp, t);
		return start(OpType::REDUCE, "tierflow:reduce", tensors, {tensors}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			if (rank_ != opts.rootRank) return run(comm, TF_REDUCE, elements_of(t), op, opts.rootRank, t.numel(), given(t), Tensor(), ns);
			const Tensor data = room(t, true);
			run_in_place(comm, TF_REDUCE, elements_of(t), op, opts.rootRank, t.numel(), data, ns);
			deliver(t, data);
		});
	}

	Ptr<Work> allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override {
		const Tensor t = only("allgather", inputs);
		const Tensors list = only_list("allgather", outputs, size_);
		check_like("allgather", list, t);
		return start(OpType::ALLGATHER, "tierflow:all_gather", inputs, outputs, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor all = at::empty({size_ * t.numel()}, t.options().memory_format(c10::nullopt));
			run(comm, TF_ALLGATHER, elements_of(t), 0, 0, t.numel(), given(t), all, ns);
			spread(all, 0, list);
		});
	}

	Ptr<Work> _allgather_base(Tensor &output, Tensor &input, const c10d::AllgatherOptions &opts) override {
		check_blocks("_allgather_base", output, input);
		return start(OpType::_ALLGATHER_BASE, "tierflow:_allgather_base", {input}, {{output}},
			[=, t = input, to = output, ns = limit(opts.timeout)](tf_comm *comm) { gather_all(comm, t, to, ns); });
	}

	Ptr<Work> allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts = c10d::AllgatherOptions()) {
		check_blocks("allgather_into_tensor_coalesced", outputs, inputs);
		return start(OpType::ALLGATHER_COALESCED, "tierflow:all_gather", inputs, {outputs}, [=, from = inputs, to = outputs, ns = limit(opts.timeout)](tf_comm *comm) {
			for (size_t i = 0; i < from.size(); i++) gather_all(comm, from[i], to[i], ns);
		});
	}

	Ptr<Work> allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override {
		check_kind("allgather_coalesced", inputs);
		if (outputs.size() != static_cast<size_t>(size_)) refuse("allgather_coalesced: ", outputs.size(), " lists of results; there are ", size_, " ranks");
		for (const auto &list : outputs) {
			if (list.size() != inputs.size()) refuse("allgather_coalesced: ", list.size(), " results of a rank; each gives ", inputs.size(), " tensors");
			for (size_t i = 0; i < list.size(); i++) check_like("allgather_coalesced", {list[i]}, inputs[i]);
		}
		return start(OpType::ALLGATHER_COALESCED, "tierflow:all_gather", inputs, outputs, [=, from = inputs, to = outputs, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor mine = flat(from), all = at::empty({size_ * mine.numel()}, mine.options());
			run(comm, TF_ALLGATHER, elements_of(mine), 0, 0, mine.numel(), mine, all, ns);
			for (int r = 0; r < size_; r++) spread(all, r * mine.numel(), to[r]);
		});
	}

	Ptr<Work> gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts) override {
		const Tensor t = only("gather", inputs);
		check_root("gather", opts.rootRank);
		Tensors list;
		if (rank_ == opts.rootRank)
			check_like("gather", list = only_list("gather", outputs, size_), t);
		else if (!outputs.empty())
			refuse("gather: only the root, rank ", opts.rootRank, ", gets results");
		return start(OpType::GATHER, "tierflow:gather", inputs, outputs, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor all = list.empty() ? Tensor() : at::empty({size_ * t.numel()}, t.options().memory_format(c10::nullopt));
			run(comm, TF_GATHER, elements_of(t), 0, opts.rootRank, t.numel(), given(t), all, ns);
			spread(all, 0, list);
		});
	}

	Ptr<Work> scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts) override {
		const Tensor t = only("scatter", outputs);
		check_root("scatter", opts.rootRank);
		Tensors list;
		if (rank_ == opts.rootRank)
			check_like("scatter", list = only_list("scatter", inputs, size_), t);
		else if (!inputs.empty())
			refuse("scatter: only the root, rank ", opts.rootRank, ", gives tensors");
		return start(OpType::SCATTER, "tierflow:scatter", list, {outputs}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor mine = room(t);
			run(comm, TF_SCATTER, elements_of(t), 0, opts.rootRank, t.numel(), list.empty() ? Tensor() : flat(list), mine, ns);
			deliver(t, mine);
		});
	}

	Ptr<Work> reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ReduceScatterOptions &opts) override {
		const Tensor t = only("reduce_scatter", outputs);
		const Tensors list = only_list("reduce_scatter", inputs, size_);
		check_like("reduce_scatter", list, t);
		const int op = op_of("reduce_scatter", opts.reduceOp, t);
		return start(OpType::REDUCE_SCATTER, "tierflow:reduce_scatter", list, {outputs}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor mine = room(t);
			run(comm, TF_REDUCE_SCATTER, elements_of(t), op, 0, t.numel(), flat(list), mine, ns);
			deliver(t, mine);
		});
	}

	Ptr<Work> _reduce_scatter_base(Tensor &output, Tensor &input, const c10d::ReduceScatterOptions &opts) override {
		check_blocks("_reduce_scatter_base", input, output);
		const int op = op_of("_reduce_scatter_base", opts.reduceOp, output);
		return start(OpType::_REDUCE_SCATTER_BASE, "tierflow:_reduce_scatter_base", {input}, {{output}},
			[=, t = output, from = input, ns = limit(opts.timeout)](tf_comm *comm) { scatter_reduced(comm, from, t, op, ns); });
	}

	Ptr<Work> reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::ReduceScatterOptions &opts = c10d::ReduceScatterOptions()) {
		check_blocks("reduce_scatter_tensor_coalesced", inputs, outputs);
		std::vector<int> ops;
		for (const auto &t : outputs) ops.push_back(op_of("reduce_scatter_tensor_coalesced", opts.reduceOp, t));
		return start(OpType::REDUCE_SCATTER, "tierflow:reduce_scatter", inputs, {outputs}, [=, from = inputs, to = outputs, ns = limit(opts.timeout)](tf_comm *comm) {
			for (size_t i = 0; i < to.size(); i++) scatter_reduced(comm, from[i], to[i], ops[i], ns);
		});
	}

	Ptr<Work> alltoall_base(Tensor &output, Tensor &input, std::vector<int64_t> &outputSplits, std::vector<int64_t> &inputSplits, const c10d::AllToAllOptions &opts) override {
		check_dense("alltoall_base", output);
		check_dense("alltoall_base", input);
		if (input.scalar_type() != output.scalar_type()) refuse("alltoall_base: from ", input.scalar_type(), " to ", output.scalar_type());
		const auto give = splits(input, inputSplits, "input"), get = splits(output, outputSplits, "output");
		const bool equal = inputSplits.empty() && outputSplits.empty();
		return start(OpType::ALLTOALL_BASE, "tierflow:all_to_all", {input}, {{output}}, [=, from = input, to = output, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor all = room(to), mine = apart(given(from), all);
			if (equal) {
				run(comm, TF_ALLTOALL, elements_of(from), 0, 0, from.numel() / size_, mine, all, ns);
			} else {
				exchange(comm, blocks(bytes_of(mine), give), blocks(bytes_of(all), get), ns);
			}
			deliver(to, all);
		});
	}

	Ptr<Work> alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override {
		if (outputs.size() != static_cast<size_t>(size_) || inputs.size() != static_cast<size_t>(size_))
			refuse("alltoall: ", inputs.size(), " tensors to give and ", outputs.size(), " to get; there are ", size_, " ranks");
		for (const auto *list : {&outputs, &inputs})
			for (const auto &t : *list) check_dense("alltoall", t);
		return start(OpType::ALLTOALL, "tierflow:all_to_all", inputs, {outputs}, [=, from = inputs, to = outputs, ns = limit(opts.timeout)](tf_comm *comm) {
			Tensors mine, all;
			std::vector<tf_block> give, get;
			for (int r = 0; r < size_; r++) {
				all.push_back(room(to[r]));
				get.push_back({bytes_of(all[r]), static_cast<int64_t>(all[r].nbytes())});
			}
			for (int r = 0; r < size_; r++) {
				mine.push_back(given(from[r]));
				for (const auto &t : all) mine[r] = apart(mine[r], t);
				give.push_back({bytes_of(mine[r]), static_cast<int64_t>(mine[r].nbytes())});
			}
			exchange(comm, give, get, ns);
			for (int r = 0; r < size_; r++) deliver(to[r], all[r]);
		});
	}

	Ptr<Work> barrier(const c10d::BarrierOptions &opts) override {
		return start(OpType::BARRIER, "tierflow:barrier", {}, {}, [=, ns = limit(opts.timeout)](tf_comm *comm) { meet(comm, ns); });
	}

	/* monitoredBarrier is a barrier: its error names those who are late, all of them. */
	void monitoredBarrier(const c10d::BarrierOptions &opts, bool) override { barrier(opts)->wait(); }

	void setSequenceNumberForGroup() override {}
	uint64_t getSequenceNumberForGroup() override { return started_; }

	Ptr<Work> send(Tensors &tensors, int to, int tag) override {
		auto m = message(OpType::SEND, "tierflow:send", tensors, to, tag, false);
		const auto e = elements_of(m->tensor_);
		check(tf.tf_start_send(line_->comm, to, tag, e.type, m->buffer_.data_ptr(), m->buffer_.numel() * e.each, &m->run_));
		return begun(std::move(m));
	}

	Ptr<Work> recv(Tensors &tensors, int from, int tag) override {
		auto m = message(OpType::RECV, "tierflow:recv", tensors, from, tag, true);
		start_recv(*m, from, tag);
		return begun(std::move(m));
	}

	Ptr<Work> recvAnysource(Tensors &tensors, int tag) override {
		auto m = message(OpType::RECVANYSOURCE, "tierflow:recvAnySource", tensors, TF_ANY, tag, true);
		start_recv(*m, TF_ANY, tag);
		return begun(std::move(m));
	}

private:
	int64_t limit(Millis timeout) const {
		return std::chrono::nanoseconds(timeout == c10d::kUnsetTimeout || timeout.count() <= 0 ? timeout_ : timeout).count();
	}

	Ptr<Work> start(OpType type, const char *title, const Tensors &inputs, std::vector<Tensors> outputs, Call::Body body) {
		auto call = c10::make_intrusive<Call>(rank_, type, title, inputs, std::move(outputs), std::move(body));
		call->line_ = line_;
		started_++;
		line_->add(call);
		return call;
	}

	static void run(tf_comm *comm, int coll, Elements e, int op, int64_t root, int64_t count, const Tensor &send, const Tensor &recv, int64_t ns, bool in_place = false) {
		tf_request r = {};
		r.coll = coll, r.type = e.type, r.op = op, r.in_place = in_place, r.root = root, r.count = count * e.each;
		check(tf.tf_call_within(comm, &r, send.defined() ? send.data_ptr() : nullptr, recv.defined() ? recv.data_ptr() : nullptr, ns));
	}

	static void run(tf_comm *comm, int coll, Elements e, int op, int64_t root, int64_t count, std::nullptr_t, const Tensor &recv, int64_t ns) {
		run(comm, coll, e, op, root, count, Tensor(), recv, ns);
	}

	static void run_in_place(tf_comm *comm, int coll, Elements e, int op, int64_t root, int64_t count, const Tensor &data, int64_t ns) {
		run(comm, coll, e, op, root, count, Tensor(), data, ns, true);
	}

	static void meet(tf_comm *comm, int64_t ns) { run(comm, TF_BARRIER, {0, 1}, 0, 0, 0, Tensor(), Tensor(), ns); }

	void gather_all(tf_comm *comm, const Tensor &t, const Tensor &to, int64_t ns) const {
		const Tensor all = room(to), mine = given(t);
		const bool there = bytes_of(mine) == bytes_of(all) + rank_ * mine.nbytes();
		run(comm, TF_ALLGATHER, elements_of(t), 0, 0, t.numel(), there ? mine : apart(mine, all), all, ns, there);
		deliver(to, all);
	}

	static void scatter_reduced(tf_comm *comm, const Tensor &from, const Tensor &t, int op, int64_t ns) {
		const Tensor mine = room(t);
		run(comm, TF_REDUCE_SCATTER, elements_of(t), op, 0, t.numel(), apart(given(from), mine), mine, ns);
		deliver(t, mine);
	}

	/* exchange is an alltoall of blocks whose sizes only two ranks know. */
	static void exchange(tf_comm *comm, const std::vector<tf_block> &give, const std::vector<tf_block> &get, int64_t ns) {
		tf_run *run;
		int done = 0;
		check(tf.tf_exchange(comm, TF_ALLTOALL, 0, give.data(), get.data(), &run));
		check(tf.tf_wait_for(run, ns, &done));
		if (done) return;
		const std::string why = "an alltoall has waited " + std::to_string(ns / 1000000) + " ms";
		tf.tf_abort(comm, why.c_str());
		check(tf.tf_wait(run));
	}

	/* splits is how many bytes of a tensor each rank's block has. */
	std::vector<int64_t> splits(const Tensor &t, const std::vector<int64_t> &sizes, const char *name) const {
		const int64_t rows = t.dim() ? t.size(0) : 1, row = rows ? static_cast<int64_t>(t.nbytes()) / rows : 0;
		std::vector<int64_t> all(sizes);
		if (all.empty()) {
			if (rows % size_) refuse("alltoall_base: the ", name, " has ", rows, " rows, which ", size_, " ranks don't share evenly; give split sizes");
			all.assign(size_, rows / size_);
		}
		int64_t sum = 0;
		for (auto &n : all) {
			if (n < 0) refuse("alltoall_base: a split size of ", n, " of the ", name);
			sum += n;
			n *= row;
		}
		if (all.size() != static_cast<size_t>(size_) || sum != rows)
			refuse("alltoall_base: ", all.size(), " split sizes of the ", name, ", ", sum, " together; there are ", size_, " ranks and ", rows, " rows");
		return all;
	}

	static std::vector<tf_block> blocks(char *at, const std::vector<int64_t> &bytes) {
		std::vector<tf_block> all;
		for (int64_t n : bytes) {
			all.push_back({at, n});
			at += n;
		}
		return all;
	}

	void check_root(const char *call, int64_t root) const {
		if (root < 0 || root >= size_) refuse(call, ": root ", root, "; ranks are 0 to ", size_ - 1);
	}

	static void check_kind(const char *call, const Tensors &list) {
		if (list.empty()) refuse(call, ": no tensors");
		for (const auto &t : list) {
			check_dense(call, t);
			if (t.scalar_type() != list[0].scalar_type()) refuse(call, ": tensors of ", t.scalar_type(), " and ", list[0].scalar_type(), "; all must have one type");
		}
	}

	void check_blocks(const char *call, const Tensor &all, const Tensor &one) const {
		check_dense(call, all);
		check_dense(call, one);
		if (all.scalar_type() != one.scalar_type() || all.numel() != size_ * one.numel())
			refuse(call, ": ", all.numel(), " elements of ", all.scalar_type(), " for blocks of ", one.numel(), " of ", one.scalar_type(), " from ", size_, " ranks");
	}

	void check_blocks(const char *call, const Tensors &all, const Tensors &one) const {
		if (all.size() != one.size()) refuse(call, ": ", all.size(), " and ", one.size(), " tensors");
		for (size_t i = 0; i < all.size(); i++) check_blocks(call, all[i], one[i]);
	}

	Ptr<Message> message(OpType type, const char *title, const Tensors &tensors, int peer, int tag, bool receives) {
		const char *call = receives ? "recv" : "send";
		const Tensor &t = only(call, tensors);
		if (tag < 0) refuse(call, ": tag ", tag, "; tags begin at 0");
		auto m = c10::make_intrusive<Message>(rank_, type, title, t, receives);
		m->line_ = line_;
		m->limit_ = timeout_;
		std::ostringstream what;
		what << "rank " << rank_ << ": " << (receives ? "the receive" : "the send") << " of " << t.numel() << " " << t.scalar_type() << (receives ? " from " : " to ");
		if (peer == TF_ANY) what << "any rank"; else what << "rank " << peer;
		what << ", tag " << tag << ",";
		m->what_ = what.str();
		return m;
	}

	void start_recv(Message &m, int from, int tag) {
		const auto e = elements_of(m.tensor_);
		check(tf.tf_start_recv(line_->comm, from, tag, e.type, m.buffer_.data_ptr(), m.buffer_.numel() * e.each, &m.status_, &m.run_));
	}

	Ptr<Work> begun(Ptr<Message> m) {
		line_->add(m);
		return m;
	}

	std::shared_ptr<Line> line_;
	Millis timeout_;
	std::atomic<uint64_t> started_{0};
};

Ptr<Base> create(const Ptr<c10d::Store> &store, int rank, int size, double seconds, const std::vector<int64_t> &ranks) {
	return c10::make_intrusive<ProcessGroupTierflow>(store, rank, size, Millis(static_cast<int64_t>(seconds * 1000)), ranks);
}

/* leave closes what is still there: at the process's good end. */
void leave() {
	std::vector<std::shared_ptr<Line>> open;
	{
		std::lock_guard<std::mutex> lock(lines_mutex);
		for (const auto &l : lines)
			if (auto line = l.lock()) open.push_back(line);
		lines.clear();
	}
	for (auto l = open.rbegin(); l != open.rend(); ++l) (*l)->close();
}

} // namespace

PYBIND11_MODULE(_C, m) {
	m.def("create", &create, py::call_guard<py::gil_scoped_release>());
	m.def("leave", &leave, py::call_guard<py::gil_scoped_release>());
}
