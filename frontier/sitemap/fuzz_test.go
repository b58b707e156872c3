package sitemap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func FuzzRead(f *testing.F) {
	for _, test := range validFiles {
		f.Add(test.file)
	}
	for _, test := range brokenFiles {
		f.Add(test.file)
	}
	for _, test := range flawedFiles {
		f.Add(test.file)
	}
	samples, err := filepath.Glob("testdata/*.*")
	if err != nil || len(samples) < 40 {
		f.Fatal(len(samples), err)
	}
	for _, name := range samples {
		file, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(file) < 4<<10 { // long seeds make fuzzing slow
			f.Add(string(file))
		}
	}
	base := mustParseURL(f, sitemapURL)
	f.Fuzz(func(t *testing.T, file string) {
		options := Options{MaxEntries: 100, MaxBytes: 1 << 20}
		whole, err := readURLs(t, strings.NewReader(file), options)
		if len(whole) > options.MaxEntries {
			t.Errorf("%d entries", len(whole))
		}
		pieces, err2 := readURLs(t, iotest.OneByteReader(strings.NewReader(file)), options)
		if !slices.Equal(whole, pieces) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Errorf("byte by byte %q: got %q, %v, want %q, %v", file, pieces, err2, whole, err)
		}
		Read(strings.NewReader(file), base, options, func(e Entry) error {
			if e.URL.IsZero() || !(e.Priority >= 0 && e.Priority <= 1) {
				t.Errorf("entry %v", e)
			}
			return nil
		})
	})
}
