package program

import (
	"fmt"
	"os"
	"strconv"
)

// Exit ends the program: with code 0 if err is nil, and otherwise with code 1, after printing name
// and err to standard error.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ParseCounts parses a list of whole numbers of at least 1.
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
