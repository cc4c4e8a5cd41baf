/* Jobs and their groups: how ranks find each other by torch's store. */
#pragma once

#include "library.hpp"

namespace {

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

} // namespace
