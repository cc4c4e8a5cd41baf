package submodules_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

// TestGallery draws the messages of a bcast by each algorithm that uses links: eight
// ranks, rank 0 the root, from the programs themselves.
func TestGallery(t *testing.T) {
	for _, s := range all.Submodules() {
		for _, a := range s.Algorithms() {
			if s.Reach() != submodules.Anywhere || !a.Does(tasks.Bcast) {
				continue
			}
			t.Run(s.Name()+"/"+a.Name, func(t *testing.T) {
				progs := compile(t, bcast(8, 0), "8", "shape=flat,fs=all,w=1,s="+s.Name()+"/"+a.Name)
				if _, err := check.Programs(progs); err != nil {
					t.Error(err)
				}
				dot := tree(s.Name()+"/"+a.Name+": "+a.Doc, progs)
				dagtest.Golden(t, "../testdata/viz/trees/bcast_"+s.Name()+"_"+a.Name+".dot", dot)
				if _, err := exec.LookPath("dot"); err != nil {
					t.Skip("the picture was not given to Graphviz: it isn't installed here")
				}
				cmd := exec.Command("dot", "-Tsvg")
				cmd.Stdin = strings.NewReader(dot)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("Graphviz: %v\n%s", err, out)
				}
			})
		}
	}
}

// tree draws a node per rank and an edge per send, labelled with the place among
// the rank's sends and, of a part of the message, its bytes. Sends between ranks
// that both have something already, as partners exchange it, are dashed and
// don't shape the picture.
func tree(title string, progs []*submodules.Program) string {
	var b strings.Builder
	b.WriteString("digraph {\n")
	fmt.Fprintf(&b, "\tgraph [fontname=\"Helvetica\", fontsize=11, labelloc=t, label=%q];\n", title)
	b.WriteString("\tnode [shape=circle, style=filled, fillcolor=\"#DDEEFF\", color=\"#555555\", fontname=\"Helvetica\", fontsize=11, width=0.4, fixedsize=true];\n")
	b.WriteString("\tedge [color=\"#0077BB\", fontname=\"Helvetica\", fontsize=9, arrowsize=0.6];\n")
	for _, p := range progs {
		fmt.Fprintf(&b, "\tr%d [label=%d];\n", p.Rank, p.Rank)
	}
	for _, p := range progs {
		sends := 0
		for _, s := range p.Steps() {
			if s.Kind != submodules.SendStep {
				continue
			}
			sends++
			label, style := fmt.Sprint(sends), ""
			if s.Len() < p.Request.Bytes() {
				label += ": " + tasks.FormatBytes(s.Len())
			}
			to := progs[p.Peers[s.Peer].Rank]
			if first := to.Step(to.Peers[to.PeerIndex(p.Rank)].In[s.Edge]); first != &to.Steps()[0] {
				style = ", style=dashed, constraint=false"
			}
			fmt.Fprintf(&b, "\tr%d -> r%d [label=%q%s];\n", p.Rank, to.Rank, label, style)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
