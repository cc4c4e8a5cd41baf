package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tierflow/tierflow/levels/files"
)

// logs are the files of each rank's output. nil: there are none.
type logs []*os.File

// openLogs opens a file for each rank in a folder, and makes the folder. It makes them anew, and
// follows no link of that name. Names sort as ranks do. An empty folder's name means no files.
func openLogs(dir string, size int) (logs, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("folder of logs: %w", err)
	}
	digits := max(2, len(strconv.Itoa(size-1)))
	var all logs
	for rank := range size {
		f, err := files.Create(filepath.Join(dir, fmt.Sprintf("rank.%0*d.log", digits, rank)), 0o666)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("log of rank %d: %w", rank, err), all.close())
		}
		all = append(all, f)
	}
	return all, nil
}

// of returns the file of a rank; nil: there is none.
func (l logs) of(rank int) *os.File {
	if l == nil {
		return nil
	}
	return l[rank]
}

func (l logs) close() error {
	var errs []error
	for rank, f := range l {
		if err := f.Close(); err != nil {
			errs = append(errs, fmt.Errorf("log of rank %d: %w", rank, err))
		}
	}
	return errors.Join(errs...)
}
