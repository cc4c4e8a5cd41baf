// Package join finds and enters a job of operating-system processes, and is the
// job's control plane: who is here, who lives on which node, authenticated
// connections between ranks, and a tree that carries short messages, agreement
// and the news that a rank has died.
//
// It never moves bulk data, knows no collective and no program, and believes
// nothing from a connection that hasn't proved the job secret. It authenticates
// peers; it neither encrypts nor signs what they send afterwards.
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
// Every rank opens its own listeners, then registers with rank 0's rendezvous
// listener and tells its host, addresses and the caller's Hello. When all have
// come rank 0 sends everyone all records and a random job number, from which the
// keys of all later connections are derived: ranks of an earlier join with the
// same secret can't stray into this one. Each rank dials its parent in the tree
// (node peers their leader, leaders each other towards rank 0 with at most 32
// below one), and Join returns after a first exchange over the tree. Until then the
// connections to rank 0 stay open: a rank that dies before it has all its
// neighbours is missed there, and rank 0 tells all why the join failed.
package join
