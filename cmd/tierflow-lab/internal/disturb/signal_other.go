//go:build !unix

package disturb

import "errors"

// stopProcess and continueProcess are errors: this system stops no process by a signal.
func stopProcess(int) error     { return errors.ErrUnsupported }
func continueProcess(int) error { return errors.ErrUnsupported }
