// Package launch starts the processes of one job, for the command run. One agent per
// node starts and watches that node's ranks. The launcher talks with each agent over
// the agent's stdin and stdout, so it needs nothing but a remote shell. It never takes
// part in the job's communication, restarts a rank only if told, and never puts the job's
// secret, or a variable, on a command line.
//
//	status, err := launch.Run(ctx, launch.Options{
//		Ranks:   8,
//		Hosts:   "a:4,b:4",
//		Program: []string{"./train", "-epochs", "3"},
//	}, os.Stdin, os.Stdout, os.Stderr)
//	if err != nil {
//		fmt.Fprintln(os.Stderr, "tierflow run:", err)
//	}
//	os.Exit(status)
//
// # What a rank finds
//
// Rank 0 reads the launcher's standard input, see [Options.Stdin], others /dev/null. Its
// working directory is the launcher's, which has to exist on every host. Its environment
// is that of [Options.Env] and [Options.Export], and says:
//
//	TIERFLOW_RANK, TIERFLOW_SIZE              its rank and the number of ranks
//	TIERFLOW_LOCAL_RANK, TIERFLOW_LOCAL_SIZE  the same counted on its node
//	TIERFLOW_RENDEZVOUS                       addr:port,addr:port… where rank 0 listens
//	TIERFLOW_RENDEZVOUS_FD                    rank 0 only: the descriptor of that listener
//	TIERFLOW_BLAME_FD                         the descriptor of a pipe, for whose failure it has met first
//	TIERFLOW_STATE_FD                         the descriptor through which [Options.Timeout] asks it what it is in
//	TIERFLOW_LOBBY_FD                         with [Options.MaxRestarts]: a socket for newcomers: some wait to join, others are let in
//	TIERFLOW_RESTARTS                         of a process that was started again: how many restarts the job has had
//	TIERFLOW_SECRET                           64 hex digits, new for every job
//	TIERFLOW_NODE                             only when one machine plays several nodes, or when asked: its node
//
// Where a host has a processor for each of its ranks, each may run on an equal share of
// them; [Options.Bind] says otherwise. On Linux timers of a rank that has one processor may
// be 1 ms late: its threads then disturb each other less.
//
// # How a job ends
//
// The first rank that fails ends the job: the others get SIGTERM and, half a second
// later, SIGKILL. If it blames another one, the other one gets a second to end by
// itself. The report is about that. When a rank ends, the processes that it left in its group are killed.
// Every loss of contact kills too: an agent kills its ranks at the end of its stdin,
// and on Linux ranks die with their agent. A process that has left its rank's process
// group is not followed.
package launch
