package datadir

import (
	"os"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/project"
)

// HoldsCrawlOf reports whether d holds the crawl of a project that is the same as p in every field, and whose
// files of seeds were not changed after it was saved: other seeds make another crawl.
func (d StateDir) HoldsCrawlOf(p project.Project) bool {
	if hasCrawl, err := d.HasCrawl(); err != nil || !hasCrawl {
		return false
	}
	differences, err := d.differencesFromSaved(p)
	return err == nil && len(differences) == 0
}

// differencesFromSaved describes how p differs from the project that the crawl in d has saved. It returns
// nothing if they are the same, and an error if the saved project or a file of seeds cannot be read.
func (d StateDir) differencesFromSaved(p project.Project) (texts []string, err error) {
	saved, err := project.ReadFile(d.Path(ProjectFile))
	if err != nil {
		return nil, err
	}
	savedAt, err := os.Stat(d.Path(ProjectFile))
	if err != nil {
		return nil, err
	}
	// Compare p as it would be saved: with absolute paths.
	text, err := EncodeProject(p)
	if err != nil {
		return nil, err
	}
	present, err := project.ParseFile(ProjectFile, text)
	if err != nil {
		return nil, err
	}
	saved.Store.Path = present.Store.Path // the directory may have been moved since
	texts = saved.Differences(present.Project)
	for _, name := range p.SeedFiles {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if info.ModTime().After(savedAt.ModTime()) {
			texts = append(texts, "the file "+name+" of seed_files has changed")
		}
	}
	return texts, nil
}

// maxListedDifferences bounds the differences that an error lists.
const maxListedDifferences = 10

// differencesText returns the lines of an error that say how p differs from the project of the crawl in d,
// and what to do; "" if that is unknown, or if they are the same and only the output, which is
// standard output, keeps the crawl from continuing.
func (d StateDir) differencesText(p project.Project) string {
	texts, err := d.differencesFromSaved(p)
	if err != nil || len(texts) == 0 {
		return ""
	}
	if len(texts) > maxListedDifferences {
		texts = append(texts[:maxListedDifferences], "and more")
	}
	return "\nThis command has other settings than that crawl:\n  " + strings.Join(texts, "\n  ") +
		"\nWith --resume, the crawl keeps its settings except for those that flags or the file of -c set. To keep " +
		"both crawls, name another directory with --data."
}
