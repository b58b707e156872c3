// Package program is what programs that measure do alike: they run themselves again with work as
// JSON, stop processes, share work among goroutines, profile what they run, and read lists of numbers.
package program

import (
	"fmt"
	"os"
	"strconv"
)

// Exit ends the program of a name: with code 0 if err is nil, and else with code 1, after err was
// printed to standard error.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ParseCounts reads a list of numbers.
func ParseCounts(list []string) (all []int, err error) {
	for _, s := range list {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of at least 1", s)
		}
		all = append(all, n)
	}
	return all, nil
}
