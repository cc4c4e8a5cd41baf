// Package door lets other processes of the same user ask a rank for its state. Each rank
// in a process has a socket in a folder of its job. Beside it are a file with its name and
// process, and the recording of its last events. Both can be read when the rank is stopped
// or dead.
//
//	d, err := door.Open(root, door.Info{Job: "4f2c91aa", Rank: 3, Ranks: 8}, answer)
//	…
//	jobs, err := door.Jobs(root)
//	answer, err := jobs[0].Ranks[3].Ask(ctx, door.Question{})
//
// The folder is in memory if the system has /dev/shm, and nobody else may read it. It
// goes with the last rank that closes; [Sweep] removes the files of killed ones.
//
//	/dev/shm/tierflow-1000/4f2c91aa/r3.json    Info
//	                                r3.sock    Question and Answer, a line of JSON each
//	                                r3.rec     see package flight
package door
