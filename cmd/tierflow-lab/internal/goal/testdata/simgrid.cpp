// Simulates a GOAL schedule with SimGrid: each rank has a host, a wire out and a wire in.
// Usage: simgrid SCHEDULE BYTES_PER_SECOND LATENCY_S. It prints the end in seconds.
//
// Of GOAL it takes what package goal writes: the ops of a rank in an order in which each
// comes after those it requires. A rank's messages leave one after the other, as on a wire;
// SimGrid would let all of them have a share of it. The next one leaves when the one before
// has come: so latencies must be short.
#include <simgrid/s4u.hpp>

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Op {
  char kind = 'c'; // s: send, r: recv, c: calc
  double size = 0; // bytes, or ns
  int peer = 0;
  std::string tag;
  std::vector<int> after;
};

static std::vector<std::vector<Op>> ranks;

static void read(const char* name) {
  std::ifstream in(name);
  std::string line;
  int rank = -1;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string label, verb, word;
    words >> label >> verb;
    if (label == "num_ranks") {
      ranks.resize(std::stoi(verb));
    } else if (label == "rank") {
      rank = std::stoi(verb);
    } else if (verb == "requires") {
      words >> word;
      ranks[rank][std::stoi(label.substr(1)) - 1].after.push_back(std::stoi(word.substr(1)) - 1);
    } else if (verb == "send" || verb == "recv" || verb == "calc") {
      Op op;
      op.kind = verb[0];
      words >> word;
      op.size = std::stod(word);
      if (op.kind != 'c')
        words >> word >> op.peer >> word >> op.tag;
      ranks[rank].push_back(op);
    }
  }
}

static sg4::Mailbox* box(int from, int to, const std::string& tag) {
  return sg4::Mailbox::by_name(std::to_string(from) + "-" + std::to_string(to) + "-" + tag);
}

static void work(int me) {
  const auto& ops = ranks[me];
  for (const auto& op : ops) // what is sent early goes at once
    if (op.kind == 'r')
      box(op.peer, me, op.tag)->set_receiver(sg4::Actor::self());
  sg4::this_actor::sleep_for(1e-9); // until all ranks have said so
  std::vector<sg4::CommPtr> open(ops.size());
  std::vector<void*> got(ops.size());
  static int payload;
  sg4::CommPtr last; // message sent
  for (size_t i = 0; i < ops.size(); i++) {
    const auto& op = ops[i];
    for (int before : op.after)
      if (open[before])
        open[before]->wait();
    if (op.kind == 's') {
      if (last)
        last->wait();
      last = open[i] = box(me, op.peer, op.tag)->put_async(&payload, std::max(1.0, op.size));
    } else if (op.kind == 'r')
      open[i] = box(op.peer, me, op.tag)->get_async<void>(&got[i]);
    else if (op.size > 0)
      sg4::this_actor::sleep_for(op.size * 1e-9);
  }
  for (auto& comm : open)
    if (comm)
      comm->wait();
}

int main(int argc, char** argv) {
  sg4::Engine e(&argc, argv);
  // A flow has what it is given: neither windows of TCP nor acknowledgements count.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/weight-S:0");
  sg4::Engine::set_config("network/latency-factor:1");
  sg4::Engine::set_config("network/bandwidth-factor:1");
  read(argv[1]);
  const double rate = std::stod(argv[2]), latency = std::stod(argv[3]);
  auto* zone = sg4::create_full_zone("machine");
  std::vector<sg4::Host*> hosts;
  std::vector<sg4::Link*> out, in;
  for (size_t r = 0; r < ranks.size(); r++) {
    hosts.push_back(zone->create_host("h" + std::to_string(r), 1e9));
    out.push_back(zone->create_link("out" + std::to_string(r), rate)->set_latency(latency));
    in.push_back(zone->create_link("in" + std::to_string(r), rate)->set_latency(0));
  }
  for (auto* l : out) l->seal();
  for (auto* l : in) l->seal();
  for (size_t a = 0; a < hosts.size(); a++)
    for (size_t b = 0; b < hosts.size(); b++)
      if (a != b)
        zone->add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr,
                        {sg4::LinkInRoute(out[a]), sg4::LinkInRoute(in[b])}, false);
  zone->seal();
  for (size_t r = 0; r < hosts.size(); r++)
    sg4::Actor::create("r" + std::to_string(r), hosts[r], work, static_cast<int>(r));
  e.run();
  std::cout.precision(12);
  std::cout << sg4::Engine::get_clock() << std::endl;
}
