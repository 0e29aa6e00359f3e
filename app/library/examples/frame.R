# Decodes one frame of a .tsr: Rscript frame.R FILE.tsr FRAME OUT    OUT gets the raw samples
# frame_r.so, made of frame_r.c, stands in the working folder.
dyn.load("frame_r.so")

call <- function(path, frame, count) {
    done <- .C("tessera_frame", path, as.integer(frame), shape = integer(6), bytes = raw(count),
               status = integer(1), text = strrep(" ", 511))
    if (done$status != 0) stop(done$text)
    done
}

words <- commandArgs(TRUE)
shape <- call(words[1], -1, 1)$shape
frame <- call(words[1], words[2], shape[6])$bytes
writeBin(frame, words[3])
cat(shape[1], "x", shape[2], ",", shape[5], "bits\n")
