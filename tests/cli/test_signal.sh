# A signal amid work leaves no temporary file and no output that is not whole.
. "${0%/*}/steps.sh"
mkdir in
# 8 MiB of noise, under many names: seconds of work.
cp "$DATA/pnm/noise_rgb.ppm" noise
while [ "$(bytes_of noise)" -lt 8388608 ]; do cat noise noise noise noise >more && mv more noise; done
{ echo "P5 4096 2048 255" && head -c 8388608 noise; } >in/0.pgm
rm noise
i=1
while [ $i -lt 60 ]; do ln in/0.pgm in/$i.pgm && i=$((i + 1)); done

for try in INT:130 TERM:143 HUP:129 INT:130; do
    signal=${try%:*} status=${try#*:}
    rm -rf made && mkdir made
    "$TESSERA" compress -r -T 2 --engine cpu in -o made >"$out" 2>"$err" &
    process=$!
    waited=0
    until [ "$(find made -name '*.tmp' -size +0)" ] && [ "$(find made -name '*.tsr')" ]; do
        sleep 0.02
        waited=$((waited + 1))
        [ $waited -lt 500 ] || break
        kill -0 $process 2>/dev/null || break
    done
    kill -s $signal $process 2>/dev/null || bad "it ended before the signal"
    wait $process
    got=$?
    [ $got -eq "$status" ] || bad "exit status $got after SIG$signal, not $status"
    no_temporaries .
    count=$(find made -type f | wc -l)
    [ "$count" -ge 1 ] && [ "$count" -lt 60 ] || bad "$count of 60 outputs: the signal came at no time of work"
    run 0 "$TESSERA" test -r -q made
    [ "$(find in -type f | wc -l)" -eq 60 ] || bad "inputs are gone"
done
finish
