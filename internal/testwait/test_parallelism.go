// Package testwait runs the tests of a package at the same time while they wait. Only tests import
// it.
package testwait

import (
	"flag"
	"strconv"
)

// SetTestParallelism lets the given number of parallel tests run at a time, in place of one for
// each processor, because the tests of a polite crawler mostly wait. Call it in TestMain before
// Run. An explicit -parallel flag takes precedence. Outside of a test binary it has no effect.
func SetTestParallelism(tests int) {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // fails outside of a test binary
	}
}
