//go:build !linux && !darwin

package flight

import "errors"

func mapFile(string, int) ([]byte, func() error, error) {
	return nil, nil, errors.New("recording to a file needs Linux or macOS")
}
