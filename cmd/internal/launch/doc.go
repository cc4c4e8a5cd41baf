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
// Rank 0 reads the launcher's standard input, see [Options.Stdin], others /dev/null. A rank's
// working directory is the launcher's, and has to exist on every host. Its environment is
// [Options.Env] with [Options.Export], and these:
//
//	TIERFLOW_RANK, TIERFLOW_SIZE              its rank and the number of ranks
//	TIERFLOW_LOCAL_RANK, TIERFLOW_LOCAL_SIZE  the same counted on its node
//	TIERFLOW_RENDEZVOUS                       addr:port,addr:port… where rank 0 listens
//	TIERFLOW_RENDEZVOUS_FD                    rank 0 only: the descriptor of that listener
//	TIERFLOW_BLAME_FD                         the descriptor of a pipe, for whose failure it has met first
//	TIERFLOW_STATE_FD                         the descriptor through which [Options.Timeout] asks it what it is in
//	TIERFLOW_LOBBY_FD                         with [Options.MaxRestarts]: a socket for newcomers: some wait to join, others are let in
//	TIERFLOW_RESTARTS                         of a process that was started again: how many restarts the job has had
//	TIERFLOW_MANAGED                          1, unless its environment has it: see planner's Options
//	TIERFLOW_SECRET                           64 hex digits, new for every job
//	TIERFLOW_NODE                             only when one machine plays several nodes, or when asked: its node
//
// On a host with a processor for each of its ranks, each may run on an equal share of them;
// [Options.Bind] says otherwise. On Linux timers of a rank with one processor may be 1 ms late:
// its threads then disturb each other less.
//
// # How a job ends
//
// The first failed rank ends the job: the others get SIGTERM and, half a second later, SIGKILL.
// If it blames another one, all get 0.2 s to fail by themselves, for that one may blame a third.
// The last of these gets a second more to end, and the report is about it. When a rank ends,
// processes left in its group are killed. Every loss of contact kills too: an agent kills its ranks
// at the end of its stdin, and on Linux ranks die with their agent. A process outside of its rank's
// process group is not followed.
package launch
