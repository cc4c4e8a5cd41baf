// Measures Gloo over its TCP transport. tierflow run starts the ranks. Compiled with -DTLS, against a Gloo that was built
// with USE_TCP_OPENSSL_LINK, it measures the TLS transport: GLOO_TLS is a folder with key.pem, cert.pem and ca.pem.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#ifdef TLS
#include <gloo/transport/tcp/tls/device.h>
#endif

#include "measure.h"

static std::shared_ptr<gloo::rendezvous::Context> context;

static void barrier() {
	gloo::BarrierOptions o(context);
	gloo::barrier(o);
}

static void maximum(double *values, int n) {
	gloo::AllreduceOptions o(context);
	o.setOutput(values, n);
	o.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::max<double>));
	gloo::allreduce(o);
}

static void run(const struct call *c) {
	const auto sum = static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>);
	size_t n = c->bytes / sizeof(float);
	if (is(c, "barrier")) {
		barrier();
	} else if (is(c, "bcast")) {
		gloo::BroadcastOptions o(context);
		o.setOutput(c->recv, n);
		o.setRoot(c->root);
		gloo::broadcast(o);
	} else if (is(c, "reduce")) {
		gloo::ReduceOptions o(context);
		o.setInput(c->send, n);
		o.setOutput(c->recv, n);
		o.setRoot(c->root);
		o.setReduceFunction(sum);
		gloo::reduce(o);
	} else if (is(c, "allreduce")) {
		gloo::AllreduceOptions o(context);
		o.setInput(c->send, n);
		o.setOutput(c->recv, n);
		o.setReduceFunction(sum);
		gloo::allreduce(o);
	} else if (is(c, "allgather")) {
		gloo::AllgatherOptions o(context);
		o.setInput(c->send, n);
		o.setOutput(c->recv, n * context->size);
		gloo::allgather(o);
	} else {
		fprintf(stderr, "no collective %s here\n", c->collective);
		exit(2);
	}
}

static int environment(const char *name) {
	const char *value = getenv(name);
	if (!value) {
		fprintf(stderr, "%s is not set: start this with tierflow run\n", name);
		exit(2);
	}
	return atoi(value);
}

int main(int argc, char **argv) {
	want_arguments(argc);
	struct library lib = {environment("TIERFLOW_RANK"), environment("TIERFLOW_SIZE"), barrier, maximum, run};
	gloo::transport::tcp::attr attr;
	attr.iface = atoi(argv[4]) > 1 ? "eth0" : "lo";
#ifdef TLS // a newer Gloo
	auto store = std::make_shared<gloo::rendezvous::FileStore>(argv[6]);
#else
	gloo::rendezvous::FileStore store(argv[6]);
#endif
	context = std::make_shared<gloo::rendezvous::Context>(lib.rank, lib.size);
#ifdef TLS
	const std::string folder = getenv("GLOO_TLS") ? getenv("GLOO_TLS") : ".";
	std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::tls::CreateDevice(
		attr, folder + "/key.pem", folder + "/cert.pem", folder + "/ca.pem", "");
#else
	std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attr);
#endif
	context->connectFullMesh(store, device);
	measure_all(&lib, argv);
	barrier();
	return 0;
}
