// Package process tells whether a process of this machine still runs. It never ends, signals or traces one.
//
// A process is known by its number, the time it began, and the name space of the number: another
// process may get the number later, and in another name space the same number is another process.
//
//	mine, space := process.Born(os.Getpid()), process.Space() // told to others of this machine
//	ended, _, known := process.Look(pid, born, space)         // there
//	ended := process.AwaitEnd(ctx, pid, born, space)
//
// Processes can be seen on Linux only; elsewhere nothing is known.
package process
