t<-0; for(r in 1:60){ d<-data.frame(a=1:200000,b=as.character(1:200000)); t<-t+nrow(d[order(d$a),])}; cat(t,"\n")
