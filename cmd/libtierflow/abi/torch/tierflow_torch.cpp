/* The backend tierflow of torch.distributed, for CPU tensors. `tierflow torch build` compiles it against the torch that is
 * there. A group is a communicator of libtierflow: that of all ranks joins by torch's store, groups of them are made
 * from it. Collectives of a group run in the order of their starts: in the thread that waits for one, else in the
 * group's own. Sends and receives are started at once. */
#include "works.hpp"

namespace {

std::mutex lines_mutex;
std::vector<std::weak_ptr<Line>> lines; /* of groups that are there */

class ProcessGroupTierflow : public Base {
public:
	ProcessGroupTierflow(const Ptr<c10d::Store> &store, int rank, int size, Millis timeout, const std::vector<int64_t> &ranks)
		: Base(rank, size), line_(std::make_shared<Line>()), timeout_(timeout) {
		std::shared_ptr<World> world;
		line_->rank = ranks.empty() ? rank : static_cast<int>(ranks.at(rank));
		if (!ranks.empty()) {
			std::lock_guard<std::mutex> lock(worlds_mutex);
			world = default_world.lock();
		}
		if (world && world->open) {
			line_->comm = sub(*world, *store, rank, ranks);
			line_->part = true;
			std::ostringstream whose;
			for (auto r : ranks) whose << " " << r;
			if (*std::max_element(ranks.begin(), ranks.end()) >= size) /* else they are the same */
				line_->whose = " (rank i of this group is the i-th, from 0 on, of the job's ranks" + whose.str() + ")";
		} else {
			if (ranks.empty()) leave_default();
			world = join(store, rank, size, timeout);
			line_->comm = world->open;
			std::lock_guard<std::mutex> lock(worlds_mutex);
			if (ranks.empty()) default_world = world;
		}
		line_->world = std::move(world);
		std::lock_guard<std::mutex> lock(lines_mutex);
		lines.erase(std::remove_if(lines.begin(), lines.end(), [](const std::weak_ptr<Line> &l) { return l.expired(); }), lines.end());
		lines.push_back(line_);
		init();
	}

	~ProcessGroupTierflow() override {
		std::optional<py::gil_scoped_release> released; /* callbacks of futures may need it */
		if (Py_IsInitialized() && PyGILState_Check()) released.emplace();
		line_->close();
	}

	const std::string getBackendName() const override { return "tierflow"; }

	Ptr<Work> broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override {
		const Tensor t = only("broadcast", tensors);
		check_root("broadcast", opts.rootRank);
		return start(OpType::BROADCAST, "tierflow:broadcast", tensors, {tensors}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor data = room(t, true);
			run(comm, TF_BCAST, elements_of(t), 0, opts.rootRank, t.numel(), Tensor(), data, ns);
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
			const Tensor all = rows(list);
			run(comm, TF_ALLGATHER, elements_of(t), 0, 0, t.numel(), apart(given(t), all), all, ns);
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
		const Tensors list = list_of_root("gather", outputs, t, opts.rootRank, "gets results");
		return start(OpType::GATHER, "tierflow:gather", inputs, outputs, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor all = list.empty() ? Tensor() : rows(list), mine = list.empty() ? given(t) : apart(given(t), all);
			run(comm, TF_GATHER, elements_of(t), 0, opts.rootRank, t.numel(), mine, all, ns);
			spread(all, 0, list);
		});
	}

	Ptr<Work> scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts) override {
		const Tensor t = only("scatter", outputs);
		const Tensors list = list_of_root("scatter", inputs, t, opts.rootRank, "gives tensors");
		return start(OpType::SCATTER, "tierflow:scatter", list, {outputs}, [=, ns = limit(opts.timeout)](tf_comm *comm) {
			const Tensor mine = room(t);
			run(comm, TF_SCATTER, elements_of(t), 0, opts.rootRank, t.numel(), list.empty() ? Tensor() : apart(flat(list), mine), mine, ns);
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
			run(comm, TF_REDUCE_SCATTER, elements_of(t), op, 0, t.numel(), apart(flat(list), mine), mine, ns);
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
		return start(OpType::BARRIER, "tierflow:barrier", {}, {}, [ns = limit(opts.timeout)](tf_comm *comm) { run(comm, TF_BARRIER, {0, 1}, 0, 0, 0, Tensor(), Tensor(), ns); });
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
		const auto begin = std::chrono::steady_clock::now();
		if (!tf.tf_call_within(comm, &r, send.defined() ? send.data_ptr() : nullptr, recv.defined() ? recv.data_ptr() : nullptr, ns)) return;
		const bool late = std::chrono::steady_clock::now() - begin >= std::chrono::nanoseconds(ns); /* programs look for the word timeout */
		throw std::runtime_error("tierflow: " + (late ? "timeout of " + std::to_string(ns / 1000000) + " ms: " : std::string()) + tf.tf_error());
	}

	static void run_in_place(tf_comm *comm, int coll, Elements e, int op, int64_t root, int64_t count, const Tensor &data, int64_t ns) {
		run(comm, coll, e, op, root, count, Tensor(), data, ns, true);
	}

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

	/* list_of_root is the tensors, one of each rank and like t, that the root alone has. */
	Tensors list_of_root(const char *call, const std::vector<Tensors> &lists, const Tensor &t, int root, const char *does) const {
		check_root(call, root);
		if (rank_ != root) {
			if (!lists.empty()) refuse(call, ": only the root, rank ", root, ", ", does);
			return {};
		}
		const Tensors list = only_list(call, lists, size_);
		check_like(call, list, t);
		return list;
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

/* leave closes what is still there at the process's end: if it is a bad one, the others hear why. */
void leave(const std::string &why) {
	std::vector<std::shared_ptr<Line>> open;
	{
		std::lock_guard<std::mutex> lock(lines_mutex);
		for (const auto &l : lines)
			if (auto line = l.lock()) open.push_back(line);
		lines.clear();
	}
	for (auto l = open.rbegin(); l != open.rend(); ++l) {
		if (why.empty())
			(*l)->close();
		else
			(*l)->abandon("rank " + std::to_string((*l)->rank) + " ends by " + why);
	}
}

} // namespace

PYBIND11_MODULE(_C, m) {
	m.def("create", &create, py::call_guard<py::gil_scoped_release>());
	m.def("leave", &leave, py::call_guard<py::gil_scoped_release>());
}
