package program

import (
	"errors"
	"sync"
)

// RunWorkers calls work in n goroutines, with the numbers 0 to n-1. When all calls have returned, it
// returns their errors.
func RunWorkers(n int, work func(worker int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = work(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
