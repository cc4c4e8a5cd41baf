/* The library, and what differs between versions of torch. */
#pragma once

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/utils/pybind.h>

#include "tierflow.h"

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

/* The library is loaded with the first group: a process may fork before, and import this module. */

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

} // namespace
