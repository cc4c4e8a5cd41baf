/* What has been started on a group: collectives, that run one after the other, and messages. */
#pragma once

#include "tensors.hpp"
#include "world.hpp"

namespace {

class Call;
class Message;

/* Line is a group's communicator, with what has been started on it and hasn't ended. */
struct Line : std::enable_shared_from_this<Line> {
	std::shared_ptr<World> world;
	tf_comm *comm = nullptr;
	bool part = false; /* of the default group */
	std::string whose; /* for errors: which ranks of the job those of a part are */
	int rank = 0; /* in the job */
	pid_t process = getpid();

	std::mutex mutex;
	std::condition_variable changed;
	std::deque<Ptr<Call>> calls; /* that nobody runs yet */
	std::vector<Ptr<Message>> messages;
	bool busy = false, closed = false;
	std::thread worker;

	void add(Ptr<Call> call);
	void add(Ptr<Message> message);
	bool step(std::unique_lock<std::mutex> &lock);
	void work();
	void close();
	void abandon(const std::string &why);
};

/* Pending is what calls and messages have in common: a future, beside what torch has itself. */
class Pending : public Work {
public:
	Pending(int rank, OpType type, const char *title, const Tensors &inputs, std::vector<Tensors> outputs)
		: Work(rank, type, title, inputs), outputs_(std::move(outputs)),
		  future_(c10::make_intrusive<c10::ivalue::Future>(outputs_.size() > 1
			  ? c10::TypePtr(c10::ListType::create(c10::ListType::create(c10::TensorType::get())))
			  : c10::TypePtr(c10::ListType::create(c10::TensorType::get())))) {}

	Ptr<c10::ivalue::Future> getFuture() override { return future_; }

	Tensors result() override {
		if (outputs_.size() > 1) refuse("result of several lists: use get_future");
		return outputs_.empty() ? Tensors() : outputs_[0];
	}

	/* end tells the future first, as waiting threads may go on at once. Callbacks may call the group: no lock is held. */
	void end(std::exception_ptr failed) {
		if (failed)
			future_->setError(failed);
		else if (outputs_.size() > 1)
			future_->markCompleted(c10::IValue(outputs_));
		else
			future_->markCompleted(c10::IValue(outputs_.empty() ? Tensors() : outputs_[0]));
		finish(failed);
	}

protected:
	std::vector<Tensors> outputs_;
	Ptr<c10::ivalue::Future> future_;
};

/* Call is a collective. */
class Call : public Pending {
public:
	using Body = std::function<void(tf_comm *)>;

	Call(int rank, OpType type, const char *title, const Tensors &inputs, std::vector<Tensors> outputs, Body body)
		: Pending(rank, type, title, inputs, std::move(outputs)), title_(title), body_(std::move(body)) {}

	/* run returns why it has failed; null: it hasn't. */
	std::exception_ptr run() {
		std::exception_ptr failed;
		try {
			at::NoGradGuard no_grad; /* results may go to leaves */
			body_(line_->comm);
		} catch (const std::exception &e) {
			failed = std::make_exception_ptr(std::runtime_error(text_of(e) + line_->whose));
		}
		body_ = nullptr;
		return failed;
	}

	/* wait runs the calls that are first, unless others do. With a limit it leaves that to the worker. */
	bool wait(Millis timeout = kNoTimeout) override {
		if (timeout != kNoTimeout) {
			std::unique_lock<std::mutex> lock(mutex_);
			if (!cv_.wait_for(lock, timeout, [this] { return completed_; }))
				throw std::runtime_error(std::string(title_) + " has waited " + std::to_string(timeout.count()) + " ms, and goes on");
			lock.unlock();
			return Work::wait();
		}
		std::unique_lock<std::mutex> lock(line_->mutex);
		while (!over_)
			if (!line_->step(lock)) line_->changed.wait(lock);
		lock.unlock();
		return Work::wait();
	}

	std::shared_ptr<Line> line_;
	bool over_ = false; /* it has run; the line's mutex is held */

private:
	const char *title_;
	Body body_;
};

/* Message is a send or receive. */
class Message : public Pending {
public:
	Message(int rank, OpType type, const char *title, const Tensor &t, bool receives)
		: Pending(rank, type, title, {t}, {{t}}), tensor_(t), buffer_(receives ? room(t) : given(t)) {}

	bool isCompleted() override {
		std::unique_lock<std::mutex> lock(ending_);
		if (!over_ && tf.tf_done(1, &run_) == 0) conclude(lock, tf.tf_wait(run_));
		return over_;
	}

	bool wait(Millis timeout = kNoTimeout) override {
		await(timeout == kNoTimeout ? limit_ : timeout);
		return Work::wait();
	}

	void await(Millis timeout) {
		std::unique_lock<std::mutex> lock(ending_);
		if (over_) return;
		int done = 0;
		const int failed = tf.tf_wait_for(run_, std::chrono::nanoseconds(timeout).count(), &done);
		if (!failed && !done)
			throw std::runtime_error("tierflow: " + what_ + " has waited " + std::to_string(timeout.count()) + " ms, and goes on" + line_->whose);
		conclude(lock, failed);
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
	/* conclude is once, at the end of the run. It gives the lock back. */
	void conclude(std::unique_lock<std::mutex> &lock, int failed) {
		std::exception_ptr why;
		try {
			check(failed);
			at::NoGradGuard no_grad;
			if (!tensor_.is_same(buffer_) && opType_ != OpType::SEND) tensor_.copy_(buffer_);
		} catch (const std::exception &e) {
			why = std::make_exception_ptr(std::runtime_error(text_of(e) + line_->whose));
		}
		over_ = true;
		lock.unlock();
		end(why);
	}

	std::mutex ending_;
	std::atomic<bool> over_{false}, threaded_{false};
};

void Line::add(Ptr<Call> call) {
	std::lock_guard<std::mutex> lock(mutex);
	if (closed) throw std::runtime_error("tierflow: the process group was destroyed");
	if (!worker.joinable()) worker = std::thread([self = shared_from_this()] { self->work(); });
	calls.push_back(std::move(call));
	changed.notify_one();
}

/* add keeps a message until it has ended: its buffers must stay. */
void Line::add(Ptr<Message> message) {
	std::vector<Ptr<Message>> going{std::move(message)};
	{
		std::lock_guard<std::mutex> lock(mutex);
		going.insert(going.end(), messages.begin(), messages.end());
		messages.clear();
	}
	going.erase(std::remove_if(going.begin(), going.end(), [](const Ptr<Message> &m) { return m->isCompleted(); }), going.end());
	std::lock_guard<std::mutex> lock(mutex);
	messages.insert(messages.end(), going.begin(), going.end());
}

/* step runs the first call. It reports whether there was one, and nobody ran another. */
bool Line::step(std::unique_lock<std::mutex> &lock) {
	if (busy || calls.empty()) return false;
	busy = true;
	auto call = std::move(calls.front());
	calls.pop_front();
	lock.unlock();
	auto failed = call->run();
	lock.lock();
	busy = false;
	call->over_ = true;
	changed.notify_all();
	lock.unlock();
	call->end(failed);
	call.reset();
	lock.lock();
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
	{
		std::unique_lock<std::mutex> lock(mutex);
		changed.wait(lock, [this] { return !busy; }); /* in a thread that waits */
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

/* abandon ends calls of all ranks with the reason, and waits for nobody. */
void Line::abandon(const std::string &why) {
	std::lock_guard<std::mutex> lock(mutex);
	if (closed || process != getpid()) return;
	closed = true;
	tf.tf_abort(comm, why.c_str());
	if (worker.joinable()) worker.detach();
	new std::shared_ptr<World>(std::move(world)); /* nobody closes it: that would wait for others */
}

} // namespace
