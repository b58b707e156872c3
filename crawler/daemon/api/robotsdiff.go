package api

import (
	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/decorum-crawler/decorum/robots"
)

// A RobotsDiff is how two versions of a robots.txt differ, line by line. What
// they mean to a crawler is compared by robots.Diff.
type RobotsDiff struct {
	Old     string     `json:"old_sha256"`
	New     string     `json:"new_sha256"`
	Added   int        `json:"added"`                // lines of new only
	Removed int        `json:"removed"`              // lines of old only
	Lines   []DiffLine `json:"lines"`                // of both files, removed ones before those in their place
	Left    int        `json:"lines_left,omitempty"` // lines of both that were not compared, of files with more than 100,000
}

// A DiffLine is a line of one of two versions, or of both.
type DiffLine struct {
	Kind string `json:"kind"`          // same, added or removed
	Old  int    `json:"old,omitempty"` // number of the line in the old file, from 1; none if it was added
	New  int    `json:"new,omitempty"` // number of the line in the new file; none if it was removed
	Text string `json:"text"`          // without the end of the line
}

// Kinds of lines.
const (
	LineSame    = "same"
	LineAdded   = "added"
	LineRemoved = "removed"
)

// maxDiffLines is how many lines of a file are compared: what is beyond is counted
// in RobotsDiff.Left. Few files have a thousand.
const maxDiffLines = 100_000

// DiffRobots compares the texts of two versions. It takes time in proportion to
// their lines: where they differ in very many it finds a change, not the least.
func DiffRobots(old, new *RobotsFile) *RobotsDiff {
	d := &RobotsDiff{Old: old.SHA256, New: new.SHA256}
	before, after := d.comparable(old.Text), d.comparable(new.Text)
	d.Lines = make([]DiffLine, 0, max(len(before), len(after)))
	at := 0
	same := func(end, shift int) {
		for ; at < end; at++ {
			d.Lines = append(d.Lines, DiffLine{LineSame, at + 1, at + 1 + shift, before[at]})
		}
	}
	shift := 0
	for _, c := range lcs.DiffLines(before, after) {
		same(c.Start, shift)
		for ; at < c.End; at++ {
			d.Lines = append(d.Lines, DiffLine{Kind: LineRemoved, Old: at + 1, Text: before[at]})
		}
		for i := c.ReplStart; i < c.ReplEnd; i++ {
			d.Lines = append(d.Lines, DiffLine{Kind: LineAdded, New: i + 1, Text: after[i]})
		}
		d.Removed += c.End - c.Start
		d.Added += c.ReplEnd - c.ReplStart
		shift = c.ReplEnd - c.End
	}
	same(len(before), shift)
	return d
}

// comparable returns the lines of a text that are compared.
func (d *RobotsDiff) comparable(text string) []string {
	var lines []string
	for n, line := range robots.Lines(text) {
		if n > maxDiffLines {
			d.Left++
			continue
		}
		lines = append(lines, line)
	}
	return lines
}
