package viz

import (
	"bytes"
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// jsonStage fixes names and order of the fields.
type jsonStage struct {
	Stage int      `json:"stage"`
	Name  string   `json:"name"`
	Tasks []string `json:"tasks"`
}

// StageJSON writes the pipeline of one rank as one object, a stage a line. Stages in which the rank rests are left out;
// tasks are in the order of the stage's name.
//
//	{"title": [lines], "rank": 0, "segments": 4,
//	 "stages": [{"stage":0,"name":"sr","tasks":["sr#0"]}, {"stage":1,"name":"irsr","tasks":["ir#0","sr#1"]}, …]}
//
// The error is that of [tasks.Graph.Stages].
func StageJSON(g *tasks.Graph) ([]byte, error) {
	stages, err := g.Stages()
	if err != nil {
		return nil, err
	}
	rows := make([]any, len(stages))
	for i, s := range stages {
		row := jsonStage{s.Index, s.Name, []string{}}
		for _, id := range s.Tasks {
			row.Tasks = append(row.Tasks, g.Node(id).String())
		}
		rows[i] = row
	}
	var b bytes.Buffer
	b.WriteString(`{"title": `)
	writeJSON(&b, title(g))
	fmt.Fprintf(&b, ",\n\"rank\": %d, \"segments\": %d,\n\"stages\": ", g.Rank, g.Segments)
	writeLines(&b, rows, nil)
	b.WriteString("}\n")
	return b.Bytes(), nil
}
