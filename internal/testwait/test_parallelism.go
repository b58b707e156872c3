// Package testwait has the tests of a package wait together.
package testwait

import (
	"flag"
	"strconv"
)

// SetTestParallelism lets so many parallel tests run at a time, rather than one a processor:
// those of a polite crawler mostly wait. It is for TestMain, before Run; outside of a
// test it does nothing. Who says -parallel knows better.
func SetTestParallelism(tests int) {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // it fails where there is no such flag
	}
}
