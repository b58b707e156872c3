package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// firstSeeds reads at most limit seeds.
func firstSeeds(p Project, limit int) (urls []string, err error) {
	for u, err := range p.AllSeeds(os.Open) {
		if err != nil {
			return urls, err
		}
		if urls = append(urls, u.String()); len(urls) == limit {
			break
		}
	}
	return urls, nil
}

func TestSeeds(t *testing.T) {
	list := testfile.Write(t, "seeds.txt", "# a comment\n\n https://a.example/1 \nHTTPS://A.example/2\n")
	p := Project{Seeds: []string{"https://b.example/"}, SeedFiles: []string{list}}
	all := []string{"https://b.example/", "https://a.example/1", "https://a.example/2"}
	for limit := 1; limit <= len(all)+1; limit++ { // the caller may stop after any seed
		got, err := firstSeeds(p, limit)
		if want := all[:min(limit, len(all))]; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the first %d: %q, %v; want %q", limit, got, err, want)
		}
	}
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil || fmt.Sprint(seedPerOrigin) != "[https://b.example/ https://a.example/1]" {
		t.Errorf("seeds %v, %v; want one of each origin", seedPerOrigin, err)
	}
}

func TestSeedErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no URL", "https://a.example/\n\nexample.com\n", "seeds.txt:3: the line is not a URL the crawl can visit"},
		{"too long a line", strings.Repeat("x", 1<<17), "seeds.txt:1: the line is longer than 65536 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := firstSeeds(Project{SeedFiles: []string{testfile.Write(t, "seeds.txt", tt.text)}}, 10)
			if !errors.As(err, new(*usage.Error)) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a *usage.Error with %q", err, tt.want)
			}
		})
	}
	if _, err := firstSeeds(Project{SeedFiles: []string{filepath.Join(t.TempDir(), "none")}},
		10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want os.ErrNotExist", err)
	}
}
