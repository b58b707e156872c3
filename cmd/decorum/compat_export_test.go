package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// A frontierExport is the decoded output of decorum frontier export.
type frontierExport struct {
	urls             map[string]exportedURL // by method and URL
	seenFingerprints map[string]bool        // origin and fingerprint
	notes            map[string]bool        // store, origin and key
	origins          map[string]exportedOrigin
}

type exportedURL struct {
	Origin         string    // the origin that has the URL in its queue
	URL            string    `json:"url"`
	State          string    `json:"state"`
	NotBefore      time.Time `json:"at"`
	RobotsFor      string    `json:"for"`
	Method         string    `json:"method"`
	Sent           bool      `json:"sent"`
	FailedAttempts int       `json:"attempt"`
}

type exportedOrigin struct {
	Origin    string    `json:"origin"`
	HeldUntil time.Time `json:"hold"`
	Suspended bool      `json:"dormant"`
}

// readExport decodes an export.
func readExport(t *testing.T, text []byte) frontierExport {
	t.Helper()
	x := frontierExport{urls: map[string]exportedURL{}, seenFingerprints: map[string]bool{}, notes: map[string]bool{},
		origins: map[string]exportedOrigin{}}
	origin := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var l struct {
			Type, Store, Key, Fingerprints string
			exportedURL
			exportedOrigin
			Origin string `json:"origin"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		switch l.Type {
		case "origin":
			origin = l.Origin
			l.exportedOrigin.Origin = origin
			x.origins[origin] = l.exportedOrigin
		case "url":
			if l.Method == "" {
				l.Method = "GET"
			}
			l.exportedURL.Origin = origin
			x.urls[l.Method+" "+l.URL] = l.exportedURL
		case "seen":
			fingerprints, err := base64.StdEncoding.DecodeString(l.Fingerprints)
			if err != nil {
				t.Fatal(err)
			}
			for fingerprint := range slices.Chunk(fingerprints, 8) {
				x.seenFingerprints[origin+" "+string(fingerprint)] = true
			}
		case "note":
			x.notes[l.Store+" "+l.Origin+" "+l.Key] = true
		}
	}
	if err := lines.Err(); err != nil || len(x.urls) == 0 {
		t.Fatalf("an export of %d URLs: %v", len(x.urls), err)
	}
	return x
}

// checkNothingLost compares the exports of a crawl before and after it continued: each URL is still
// there or was requested, and parked URLs, fingerprints and notes are still there.
func checkNothingLost(t *testing.T, before, after frontierExport, requested map[string]int) {
	t.Helper()
	for name, u := range before.urls {
		now, exists := after.urls[name]
		switch {
		case u.State == "parked" && now.State != "parked":
			t.Errorf("%s was parked, and is %q now", name, now.State)
		case u.Sent && requested[name] > 0:
			t.Errorf("%s may have been sent before, and was sent again", name)
		case u.Sent && exists:
			t.Errorf("%s may have been sent before, and is %s", name, now.State)
		case !exists && !u.Sent && requested[name] == 0:
			t.Errorf("%s was %s, and is lost", name, u.State)
		}
	}
	for fingerprint := range before.seenFingerprints {
		if !after.seenFingerprints[fingerprint] {
			t.Errorf("a URL was forgotten: %q", fingerprint)
		}
	}
	for note := range before.notes {
		if !after.notes[note] && !strings.HasSuffix(note, " hop") { // a redirect of a robots.txt may have been followed
			t.Errorf("the note %q was forgotten", note)
		}
	}
}
