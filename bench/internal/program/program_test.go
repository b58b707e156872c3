package program

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRunProfiled: both profiles are written even if run fails, and its error is returned. Without a
// directory for the profiles, run is not called.
func TestRunProfiled(t *testing.T) {
	file, failed := filepath.Join(t.TempDir(), "run"), errors.New("it failed")
	ran := 0
	run := func() error { ran++; return failed }
	for _, file := range []string{"", file} {
		if err := RunProfiled(file, run); !errors.Is(err, failed) {
			t.Errorf("into %q: %v", file, err)
		}
	}
	if ran != 2 {
		t.Errorf("run was called %d times, want 2", ran)
	}
	for _, ending := range []string{".cpu", ".heap"} {
		if info, err := os.Stat(file + ending); err != nil || info.Size() == 0 {
			t.Errorf("profile %s is missing or empty: %v", ending, err)
		}
	}
	if err := RunProfiled(filepath.Join(t.TempDir(), "none", "run"), run); err == nil || ran != 2 {
		t.Errorf("without the directory: %v, and %d calls of run", err, ran)
	}
}

// TestRunWorkers: each worker runs once, and the errors of all workers are returned.
func TestRunWorkers(t *testing.T) {
	ran, failed := make([]int, 5), [2]error{errors.New("one failed"), errors.New("another failed")}
	err := RunWorkers(len(ran), func(worker int) error {
		ran[worker]++
		if worker%2 == 1 {
			return failed[worker/2]
		}
		return nil
	})
	if !errors.Is(err, failed[0]) || !errors.Is(err, failed[1]) || !slices.Equal(ran, []int{1, 1, 1, 1, 1}) {
		t.Errorf("runs by worker %v, error %v", ran, err)
	}
}

func TestParseCounts(t *testing.T) {
	if got, err := ParseCounts([]string{"1", "20"}); err != nil || !slices.Equal(got, []int{1, 20}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "x", "0", "-1", "1.5"} {
		if got, err := ParseCounts([]string{"1", bad}); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
