package httpgw

import (
	"net/http"
	"net/http/httptest"

	"github.com/keyload/keyload/fault"
)

// ProblemHeader are the headers an error is answered with.
func ProblemHeader(f *fault.Error) http.Header {
	w := httptest.NewRecorder()
	(&Gateway{}).writeProblem(w, jsonType, f, f.Code.Status())
	return w.Header()
}
