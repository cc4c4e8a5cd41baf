package trials

import (
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/tasks"
)

// readWork reads an operand of collectives and --bytes: a request for each size, one for a
// collective without data.
func readWork(p *kit.Problem, operand string) (all []tasks.Request, err error) {
	colls, err := kit.ParseCollectives(operand)
	if err != nil {
		return nil, err
	}
	if err := p.CheckFlags(colls...); err != nil {
		return nil, err
	}
	sizes, err := kit.ParseSizes(p.Bytes)
	if err != nil {
		return nil, kit.Usagef("--bytes: %w", err)
	}
	for _, coll := range colls {
		for _, n := range sizes {
			r, err := p.ReadRequest(coll, n, p.Job.Topology())
			if err != nil {
				return nil, err
			}
			if all = append(all, r); !coll.HasData() {
				break
			}
		}
	}
	return all, nil
}
