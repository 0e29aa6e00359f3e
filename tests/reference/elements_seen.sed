# The lines of FORMAT.md 4.16.4 as strings of C.
/^#### 4\.16\.4 /,/^##* [^4]/{
  /^```/,/^```/{
    /^```/d
    s/[\\"]/\\&/g
    s/.*/    "&",/p
  }
}
