// Package kit is shared by the commands of tierflow: the command line, the problem described by
// flags, the job's ranks, and the output. It measures nothing and knows no command.
//
//	p := &kit.Problem{}
//	c := &cobra.Command{Use: "coll OP", Args: kit.Operand("a collective"), RunE: kit.Interruptible(run)}
//	p.AddJobFlags(c)                                 // --topo, --link
//	p.AddRequestFlags(c, "1MiB", "size of a buffer") // --bytes, --root …
//	request, topology, err := p.ReadOne("bcast")     // all complaints at once
//
// A wrong argument is an error of [Usagef]. It ends the program with status 2.
package kit
