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

// A pastExport is what decorum frontier export says of a crawl.
type pastExport struct {
	urls    map[string]exportedURL // by method and URL
	seen    map[string]bool        // origin and fingerprint
	notes   map[string]bool        // store, origin and key
	origins map[string]exportedOrigin
}

type exportedURL struct {
	Origin  string    // that has it
	URL     string    `json:"url"`
	State   string    `json:"state"`
	At      time.Time `json:"at"`
	For     string    `json:"for"`
	Method  string    `json:"method"`
	Sent    bool      `json:"sent"`
	Attempt int       `json:"attempt"`
}

type exportedOrigin struct {
	Origin  string    `json:"origin"`
	Hold    time.Time `json:"hold"`
	Dormant bool      `json:"dormant"`
}

// readExport reads an export.
func readExport(t *testing.T, text []byte) pastExport {
	t.Helper()
	x := pastExport{urls: map[string]exportedURL{}, seen: map[string]bool{}, notes: map[string]bool{},
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
			prints, err := base64.StdEncoding.DecodeString(l.Fingerprints)
			if err != nil {
				t.Fatal(err)
			}
			for print := range slices.Chunk(prints, 8) {
				x.seen[origin+" "+string(print)] = true
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

// checkNothingLost checks what a crawl holds after it has gone on against what it held
// before: each URL is there, or was requested; what was parked, or seen, or noted, still is.
func checkNothingLost(t *testing.T, before, after pastExport, requested map[string]int) {
	t.Helper()
	for name, u := range before.urls {
		now, there := after.urls[name]
		switch {
		case u.State == "parked" && now.State != "parked":
			t.Errorf("%s was parked, and is %q now", name, now.State)
		case u.Sent && requested[name] > 0:
			t.Errorf("%s may have been sent before, and was sent again", name)
		case u.Sent && there:
			t.Errorf("%s may have been sent before, and is %s", name, now.State)
		case !there && !u.Sent && requested[name] == 0:
			t.Errorf("%s was %s, and is lost", name, u.State)
		}
	}
	for print := range before.seen {
		if !after.seen[print] {
			t.Errorf("a URL was forgotten: %q", print)
		}
	}
	for note := range before.notes {
		if !after.notes[note] && !strings.HasSuffix(note, " hop") { // a hop may be over
			t.Errorf("the note %q was forgotten", note)
		}
	}
}
