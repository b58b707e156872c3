package page

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A problemData is the view of a problem.
type problemData struct {
	Title, Error string
	BackURL      string // the page with the form that failed
}

func forbiddenProblem(detail string) *api.Problem {
	return &api.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: detail}
}

func unreadableFormProblem(err error) *api.Problem {
	p := &api.Problem{Title: "The form cannot be read", Status: http.StatusBadRequest, Detail: err.Error()}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p.Status = http.StatusRequestEntityTooLarge
		p.Detail = fmt.Sprintf("the form exceeds the limit of %s; use the API for more",
			formatBytes(float64(tooLarge.Limit)))
	}
	return p
}

// problemView returns the page that shows an error, with the error's status.
func problemView(err error) pageResult {
	p := problemOf(err)
	return pageResult{templateName: "problem", title: p.Title, status: p.Status,
		data: problemData{p.Title, p.Error(), "/"}}
}

// problemOf returns err if it is a *api.Problem, and otherwise a Problem (500) with its text.
func problemOf(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	return &api.Problem{Title: http.StatusText(http.StatusInternalServerError),
		Status: http.StatusInternalServerError, Detail: err.Error()}
}
