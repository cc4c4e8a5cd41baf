// Package viz draws plans and runs: task and step graphs as DOT, text and JSON, stage
// tables as in the figures of the HAN paper, and timelines of traced runs for
// Perfetto and for terminals.
//
// The same input always gives the same bytes. The package never runs anything, reads
// no clock or file, starts no other program and changes nothing that it draws.
//
//	d, err := viz.Tasks(graphs, viz.Options{To: 3}) // or viz.Steps(programs, …)
//	os.Stdout.Write(d.DOT())                        // | dot -Tsvg
//	os.Stdout.Write(d.Text())
//	table, err := viz.StageTable(graphs[0])         // sr irsr ibirsr …
//	path := viz.TracePath(recorder.Events())        // what held up the end
//	os.WriteFile("trace.json", viz.Perfetto(recorder.Events(), path...), 0o644)
package viz
