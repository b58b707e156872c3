package program

import (
	"errors"
	"sync"
)

// RunWorkers runs work in n goroutines, which have the numbers from 0 to n-1, and returns the errors
// of all when the last has returned.
func RunWorkers(n int, work func(worker int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = work(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
