// Package join finds and enters a job of operating-system processes, and is the job's
// control plane. It knows the ranks and their nodes, makes authenticated connections
// between ranks, and has a tree for short messages, for agreement and for news of a
// dead rank.
//
// It never moves bulk data and knows no collective and no program. It believes
// nothing from a connection without a proof of the job secret. It authenticates
// peers; it neither encrypts nor signs their data. Package launcher finds out who
// started the process.
//
//	cfg, err := join.FromEnv(os.Getenv)
//	job, err := join.Join(ctx, cfg)            // every rank calls it
//	defer job.Close(ctx)
//	job.OnLost(func(r levels.Rank, err error) { … })
//	job.Accept(func(r levels.Rank, purpose uint8, c net.Conn) { … })
//	all, err := job.Exchange(ctx, []byte("my table")) // all[r] is rank r's
//	conn, err := job.Dial(ctx, 5, 1)
//
// # How ranks meet
//
// Ranks need an address of rank 0 and a secret. tierflow run, torchrun and the
// environment tell both. With Config.Share rank 0 makes them itself and
// gives them to all as an invitation.
//
// Every rank opens its own listeners, then registers with rank 0's rendezvous
// listener and tells its host, addresses and the caller's Hello. When all have come
// rank 0 sends everyone its place in the tree and a random job number. The keys of all
// later connections are derived from that number: ranks of an earlier join with the same
// secret can't stray into this one. Each rank dials its parent in the tree (node
// peers their leader, leaders each other towards rank 0 with at most 32 below one).
// The records of all ranks come down the tree, and Join returns after a first exchange
// over it. Until then the connections
// to rank 0 stay open. So rank 0 misses a rank that dies before it has all its
// neighbours, and tells all why the join failed.
package join
